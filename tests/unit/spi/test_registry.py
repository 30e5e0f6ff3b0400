"""From a scheme to its provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.spi import registry
from pyjmsack.uri import parse_url

CONNECTOR: Any = object()


def test_scheme_without_a_provider_is_refused() -> None:
    url = replace(parse_url("amqp://h"), scheme="wire")
    with pytest.raises(UnsupportedFeatureException, match="pyjmsack can read wire URLs"):
        registry.create_provider(url, CONNECTOR)


def test_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._FACTORIES, "amqp", ("no_such_library", "Provider"))
    with pytest.raises(UnsupportedFeatureException, match="amqp URLs need no_such_library, which is not installed"):
        registry.create_provider(parse_url("amqp://h"), CONNECTOR)
