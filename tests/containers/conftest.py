"""Brokers of the plugin's, in containers where there are some, and variants of the images, which need containers."""

from __future__ import annotations

import shutil

import pytest

from _pyjmsack_pytestplugin import brokers_of


@pytest.fixture(scope="session")
def containers(pytestconfig: pytest.Config) -> None:
    """Skip what cannot be embedded."""
    brokers = brokers_of(pytestconfig)
    if not brokers.container:
        pytest.skip(brokers.header)


@pytest.fixture(scope="session")
def docker(containers: None) -> str:
    """The engine's command."""
    command = shutil.which("docker")
    if command is None:
        pytest.skip("no docker command")
    return command
