"""What the machine must provide, said clearly where it is missing."""

from __future__ import annotations

import ssl

import pytest

SYSTEM_PACKAGES = "gcc libc6-dev python3-dev python3-venv libssl-dev pkg-config"
"""Debian's names. Without the last two proton compiles in silence, but without TLS."""


def test_proton_was_built_with_tls() -> None:
    from proton import SSL

    if not SSL.present():
        pytest.fail(
            "python-qpid-proton was built without OpenSSL. pyjmsack can do without (its TLS is Python's ssl module),"
            " but whatever else uses proton in this environment has no amqps://. Install the system packages"
            f" (Debian: {SYSTEM_PACKAGES}), then build it anew:"
            " pip install --force-reinstall --no-cache-dir python-qpid-proton",
            pytrace=False,
        )


def test_python_has_the_tls_that_amqps_needs() -> None:
    assert ssl.HAS_TLSv1_2, "this Python was built without TLS 1.2, the least that amqps:// accepts"
