"""The exceptions for what an AMQP broker refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pyjmsack.errors import InvalidSelectorException, JMSException
from pyjmsack.providers.amqp.engine.performatives import Error
from pyjmsack.providers.amqp.errors import connection_error, link_error, outcome_error, transport_error


@pytest.mark.parametrize(
    "convert",
    [
        partial(connection_error, what="closed"),
        partial(link_error, what="refused"),
        partial(link_error, what="refused", selector="a = 1"),
        partial(outcome_error, "rejected"),
        transport_error,
    ],
    ids=["connection", "link", "selector", "outcome", "transport"],
)
@pytest.mark.parametrize("condition", ["amqp:invalid-field", "c" * 1_000_000], ids=["short", "long"])
@pytest.mark.parametrize("description", [None, "idle-timeout " + "d" * 1_000_000], ids=["none", "long"])
def test_an_exception_has_only_the_beginning_of_a_broker_s_long_text(
    convert: Callable[..., JMSException], condition: str, description: str | None
) -> None:
    """One frame of 1 MB rejected 400 sends, and the texts of their exceptions took 400 MB."""
    error = convert(error=Error(condition=condition, description=description))
    assert len(str(error)) < 2200
    assert (error.error_code or "") == condition[:1000]


def test_a_refused_selector_has_the_reason_of_the_broker() -> None:
    error = link_error(Error(condition="amqp:invalid-field", description="bad"), "refused", selector="a = 1")
    assert isinstance(error, InvalidSelectorException)
    assert str(error) == "refused: the broker refused the selector 'a = 1' (bad)"
