"""Temporary destinations, which exist as long as the link that created them (AMQP 1.0 3.5.3, 3.5.10)."""

from __future__ import annotations

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.engine.performatives import Attach, Source, Target
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.providers.amqp.wire_types import Described, ULong
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import TemporaryInfo

__all__ = ["AmqpTemporary"]

_DELETE_ON_CLOSE = Described(ULong(0x2B), [])


class AmqpTemporary(AmqpLink):
    """The link that keeps a temporary destination alive. The broker creates the destination for the link and deletes it
    when the link closes (S132). No message is sent on the link."""

    def __init__(self, engine: AmqpEngine, session: SessionEnd, name: str, info: TemporaryInfo) -> None:
        target = Target(
            dynamic=True,
            dynamic_node_properties={"lifetime-policy": _DELETE_ON_CLOSE},
            capabilities=(info.kind.capability,),
        )
        source = Source(address=f"temporary:{info.id}")
        attach = Attach(link_name=name, handle=0, role=False, snd_settle_mode=0, source=source, target=target)
        super().__init__(engine, session, attach, f"a temporary {'topic' if info.kind.is_topic else 'queue'}")
        self.info = info

    def create(self, named: Completion[str]) -> None:
        """Attach the link. ``named`` gets the name that the broker chose."""
        attached: Completion[None] = Completion()
        attached.add_callback(lambda _: self._answered(attached.error, named))
        self.open(attached)

    def _answered(self, error: BaseException | None, named: Completion[str]) -> None:
        name = None if error is not None else self._link.remote.target.address
        if error is None and isinstance(name, str) and name.strip():
            named.succeed(name)
            return
        if error is None:
            self.close(Completion())
            error = JMSException(f"{self._what}: the broker gave the destination no name")
        named.fail(error)

    def _attached(self) -> bool:
        return self._link.remote.target is not None
