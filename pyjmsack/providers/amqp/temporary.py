"""Temporary destinations: dynamic nodes that live as long as the link that made them (AMQP 1.0 3.5.3, 3.5.10)."""

from __future__ import annotations

from proton import Described, Sender, Terminus, symbol, ulong

from pyjmsack.providers.amqp.link import AmqpLink, set_terminus
from pyjmsack.providers.amqp.proton_engine import AmqpEngine
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import TemporaryInfo

__all__ = ["AmqpTemporary"]

_DELETE_ON_CLOSE = Described(ulong(0x2B), [])


class AmqpTemporary(AmqpLink):
    """A sending link that nothing is sent on: its target is made for it, and deleted when it closes (S132)."""

    def __init__(self, engine: AmqpEngine, link: Sender, info: TemporaryInfo) -> None:
        super().__init__(engine, link, f"a temporary {'topic' if info.kind.is_topic else 'queue'}")
        self.info = info
        set_terminus(link.target, None, info.kind.capability)
        link.target.dynamic = True
        link.target.properties.put_dict({symbol("lifetime-policy"): _DELETE_ON_CLOSE})
        link.source.address = f"temporary:{info.id}"
        link.snd_settle_mode, link.rcv_settle_mode = link.SND_UNSETTLED, link.RCV_FIRST

    def create(self, named: Completion[str]) -> None:
        """Attach; ``named`` with the name that the broker chose."""
        attached: Completion[None] = Completion()
        attached.add_callback(lambda _: self._answered(attached.error, named))
        self.open(attached)

    def _answered(self, error: BaseException | None, named: Completion[str]) -> None:
        if error is None:
            named.succeed(self._link.remote_target.address)
        else:
            named.fail(error)

    def _attached(self) -> bool:
        return bool(self._link.remote_target.type != Terminus.UNSPECIFIED)
