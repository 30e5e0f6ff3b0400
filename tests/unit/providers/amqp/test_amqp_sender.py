"""What a sender does with messages that wait for credit."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from pyjmsack.destination import Queue
from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.engine.performatives import Rejected
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.spi.envelope import Outbound, StreamedPayload
from pyjmsack.spi.resources import ProducerInfo


class _Send(Outbound):
    """Counts how often any send is compared with another one."""

    compared = 0

    def __init__(self, payload: Any = b"x") -> None:
        self.payload = payload
        self.presettled = self.transacted = False
        self.outcome: Any = "open"

    def __eq__(self, other: object) -> bool:
        _Send.compared += 1
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def done(self, error: BaseException | None) -> None:
        self.outcome = error


def test_a_send_is_taken_back_without_a_look_at_all_that_wait() -> None:
    """S91: when a connection is lost, each open send is asked for, on the loop that other connections share."""
    link: Any = MagicMock(credit=0)
    sender = AmqpSender(MagicMock(failed=None), MagicMock(), "name", ProducerInfo(1, 1, Queue("q")), "q", lambda: b"")
    sender._link = link
    left, waiting = [_Send() for _ in range(500)], [_Send() for _ in range(1500)]
    for outbound in waiting:
        sender.send(outbound)
    assert not any(sender.withdraw(outbound) for outbound in left)
    assert all(sender.withdraw(outbound) for outbound in waiting[::2])
    assert _Send.compared < 5 * (len(left) + len(waiting))
    link.credit = len(waiting)
    sender.on_flow()
    assert [call.args[1] for call in link.send.call_args_list] == waiting[1::2]


def test_an_outcome_in_the_middle_of_a_body_lets_the_messages_behind_it_go_on() -> None:
    """S168: they waited, and all later sends of this producer, until the broker granted credit for another reason."""
    link: Any = MagicMock(credit=10, drain=False)
    info = ProducerInfo(1, 1, Queue("q"))
    sender = AmqpSender(MagicMock(failed=None), MagicMock(), "name", info, "q", lambda: b"", connector=MagicMock())
    sender._link = link
    large, behind = _Send(StreamedPayload(b"head", b"mark", MagicMock(length=1000))), _Send()
    sender.send(large)
    sender.send(behind)
    link.send.assert_not_called()
    sender.on_outcome(large, Rejected())
    assert isinstance(large.outcome, JMSException)
    assert [call.args[1] for call in link.send.call_args_list] == [behind]
