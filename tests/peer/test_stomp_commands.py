"""Commands at a STOMP broker that does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from click.testing import CliRunner, Result
from stomp_peer import Received, StompPeer

from pyjmsack.cli.main import cli


@contextmanager
def silent_after(answers: int) -> Iterator[StompPeer]:
    """A broker that answers some SEND frames, and no more."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        return frame.command == "SEND" and len(peer.all("SEND")) > answers

    peer = StompPeer(rule=rule)
    try:
        yield peer
    finally:
        peer.stop()


def sent(peer: StompPeer, lines: int) -> Result:
    url = f"{peer.url}?jms.sendTimeout=300&jms.closeTimeout=100"
    return CliRunner().invoke(cli, ["send", "orders", "--url", url], input="line\n" * lines)


def test_send_ends_if_no_answer_comes_within_the_send_timeout() -> None:
    """S66: `pyjmsack send` waited for ever, whatever the URL said."""
    with silent_after(0) as peer:
        result = sent(peer, 7)
    assert result.exit_code == 1
    assert "Sent 7, confirmed 0" in result.stderr
    assert "the broker answered no send within jms.sendTimeout (0.3 s); 7 messages were not confirmed" in result.stderr


def test_the_send_timeout_is_no_limit_for_a_command_whose_sends_are_answered() -> None:
    """S66: the limit counts from the last answer."""
    with silent_after(3000) as peer:
        result = sent(peer, 3000)
    assert (result.exit_code, result.stderr.partition(" (")[0]) == (0, "Sent 3,000, confirmed 3,000")
