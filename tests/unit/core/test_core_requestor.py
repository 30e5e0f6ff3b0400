"""Replies that arrive while a signal handler raises in another call of the same requestor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound
from interrupting import Strike

from pyjmsack.core import inbox, requestor, session, taking
from pyjmsack.core.requestor import Request, Requestor
from pyjmsack.destination import Queue

STEPS = 1000
"""More than the steps of a call."""


def asked(bench: Bench) -> tuple[Requestor, Request]:
    """Return a requestor, and a request under way whose correlation id is "asked"."""
    bench.provider.create_temporary = lambda info, named: named.succeed("replies")
    requestor: Requestor = bench.run(Requestor.open(bench.connection, bench.session(), Queue("service"), bench.run))
    request = requestor.send("?", None, None, None, None)
    requestor._requests["asked"] = request
    bench.runtime.turn()
    return requestor, request


def send(_: Bench, requestor: Requestor) -> None:
    requestor.send("another", None, None, None, None)


def start(bench: Bench, _: Requestor) -> None:
    bench.connection.start()


@pytest.mark.parametrize("call", [send, start])
def test_ctrl_c_at_any_step_of_a_call_loses_no_reply_to_the_request_of_another_thread(
    call: Callable[[Bench, Requestor], None],
) -> None:
    """The reply arrives just before. The interrupted call had taken it, and had not given it to the request yet."""
    files = [str(module.__file__) for module in (inbox, requestor, session, taking)]
    for step in range(1, STEPS):
        bench = Bench()
        asking, request = asked(bench)
        if call is start:
            bench.run(bench.connection.stop())
        reply: Any = FakeInbound("reply")
        reply.correlation_id = "asked"
        asking._consumer.deliver(reply)
        strike = Strike(step, KeyboardInterrupt, *files)
        hit = strike.hits(lambda bench=bench, asking=asking: call(bench, asking))  # type: ignore[misc]  # mypy sees no default
        if call is start:  # the sessions that the interrupted call had not come to
            bench.run(bench.connection.stop())
            bench.connection.start()
        bench.runtime.turn()
        bench.arrive(asking._consumer)  # the loop goes on
        assert [*request.replies] == [reply], step
        if not hit:
            return
    pytest.fail("the call has more steps than the test")


def test_a_request_whose_link_was_lost_while_it_was_sent_gets_the_error() -> None:
    bench = Bench()
    asking, _ = asked(bench)
    lost = ValueError("gone")
    asking._consumer.on_arrival = None  # the loop told the requestor before the request was in its table
    asking._consumer.detached(lost)
    assert asking.send("?", None, None, None, None).error is lost
