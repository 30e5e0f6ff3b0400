"""Commands at a STOMP broker that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from click.testing import CliRunner, Result
from stomp_peer import CLASSIC, Received, StompPeer

from pyjmsack.cli.main import cli


@contextmanager
def broker(rule: Callable[[StompPeer, Received], bool]) -> Iterator[StompPeer]:
    peer = StompPeer(CLASSIC, rule=rule)  # each SEND asks for a receipt there
    try:
        yield peer
    finally:
        peer.stop()


def sent(peer: StompPeer, lines: int, limit: float) -> Result:
    url = f"{peer.url}?jms.sendTimeout={1000 * limit:.0f}&jms.closeTimeout=100"
    return CliRunner().invoke(cli, ["send", "orders", "--url", url], input="line\n" * lines)


def test_send_ends_if_no_answer_comes_within_the_send_timeout() -> None:
    """S66: `pyjmsack send` waited for ever, whatever the URL said."""
    with broker(lambda peer, frame: frame.command == "SEND") as peer:
        result = sent(peer, 7, 0.3)
    assert result.exit_code == 1
    assert "Sent 7, confirmed 0" in result.stderr
    assert "the broker answered no send within jms.sendTimeout (0.3 s); 7 messages were not confirmed" in result.stderr


def test_the_send_timeout_is_no_limit_for_a_command_whose_sends_are_answered() -> None:
    """S66: the limit counts from the last answer. A slow broker answers each send in time, and all of them too late."""

    def slow(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SEND":
            time.sleep(0.5)
        return False

    with broker(slow) as peer:
        result = sent(peer, 8, 3)
    assert (result.exit_code, result.stderr.partition(" (")[0]) == (0, "Sent 8, confirmed 8")
