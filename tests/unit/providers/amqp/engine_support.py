"""Our engine with a peer in memory whose frames are written by hand."""

from __future__ import annotations

from typing import Any

from pyjmsack.providers.amqp.engine import Connection, ReceiverLink, SenderLink, Session
from pyjmsack.providers.amqp.engine.events import FAILED, Event
from pyjmsack.providers.amqp.engine.frames import PROTOCOL_HEADER, FrameReader, frame
from pyjmsack.providers.amqp.engine.performatives import (
    Attach,
    Begin,
    Composite,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    decode,
    encode,
)

LARGE = 2**31 - 1


def sending(name: str = "s") -> Attach:
    """Return the Attach of a link that we send on."""
    return Attach(link_name=name, handle=0, role=False, source=Source(address="here"), target=Target(address="q"))


def receiving(name: str = "r") -> Attach:
    """Return the Attach of a link that we receive on."""
    return Attach(link_name=name, handle=0, role=True, source=Source(address="q"), target=Target(address="here"))


class Wire:
    """Our engine and a peer of whom the test writes every frame."""

    def __init__(self, **options: Any) -> None:
        self.connection = Connection(**options)
        self.connection.open(Open(container_id="ours"))
        self._reader = FrameReader(2**32 - 1)
        self._greeted = False

    def bytes(self, data: bytes) -> list[Event]:
        """Let the peer write bytes."""
        return list(self.connection.receive(data))

    def say(self, performative: Composite, payload: bytes = b"", channel: int = 0) -> list[Event]:
        """Let the peer write a frame, and its protocol header before the first one."""
        header, self._greeted = b"" if self._greeted else PROTOCOL_HEADER, True
        return self.bytes(header + frame(channel, encode(performative) + payload))

    def said(self) -> list[tuple[Composite, bytes]]:
        """Return the frames that we have written since, each with its payload; an empty frame is left out."""
        found = []
        while data := self.connection.data_to_send():
            for _, buffer, start, end in self._reader.cut(data):
                if start < end:
                    performative, after = decode(buffer, start, end)
                    found.append((performative, buffer[after:end]))
        return found

    def one(self, kind: type[Composite]) -> Any:
        """Return the only frame of this kind that we have written since."""
        (found,) = [performative for performative, _ in self.said() if isinstance(performative, kind)]
        return found

    def session(self, *, window: int = LARGE, handle_max: int = 0xFFFFFFFF, **ours: Any) -> Session:
        """Open the connection and begin a session, at both ends."""
        session = self.connection.begin(**ours)
        if self.connection.remote is None:
            self.say(Open(container_id="peer", max_frame_size=512))
        begin = Begin(
            remote_channel=session.channel,
            next_outgoing_id=0,
            incoming_window=window,
            outgoing_window=LARGE,
            handle_max=handle_max,
        )
        self.say(begin, channel=session.channel)
        return session

    def sender(self, session: Session, credit: int = 100, name: str = "s") -> SenderLink:
        """Attach a link at both ends, with credit."""
        link = session.attach_sender(sending(name))
        attach = Attach(link_name=name, handle=link.handle, role=True, source=link.local.source, target=Target())
        self.say(attach, channel=session.channel)
        self.credit(link, credit, channel=session.channel)
        self.said()
        return link

    def credit(self, link: SenderLink, credit: int, *, window: int = LARGE, channel: int = 0, **more: Any) -> Any:
        """Let the peer grant credit as of the beginning of the link."""
        fields: dict[str, Any] = {"next_incoming_id": 0, "delivery_count": 0, **more}
        flow = Flow(
            incoming_window=window,
            next_outgoing_id=0,
            outgoing_window=LARGE,
            handle=link.handle,
            link_credit=credit,
            **fields,
        )
        return self.say(flow, channel=channel)

    def receiver(self, session: Session, credit: int = 100, name: str = "r", **options: Any) -> ReceiverLink:
        """Attach a link at both ends, and grant credit."""
        link = session.attach_receiver(receiving(name), **options)
        self.say(answer_to(link), channel=session.channel)
        if credit:
            link.grant(credit)
        self.said()
        return link

    def transfer(self, number: int | None, payload: bytes = b"m", handle: int = 0, **fields: Any) -> list[Event]:
        """Let the peer send a transfer."""
        tag = None if number is None else b"t%d" % number
        return self.say(Transfer(handle=handle, delivery_id=number, delivery_tag=tag, **fields), payload)


def answer_to(link: ReceiverLink) -> Attach:
    """Return the Attach by which a peer answers that of a link that we receive on."""
    return Attach(
        link_name=link.local.link_name,
        handle=link.handle,
        role=False,
        source=Source(address="q"),
        target=link.local.target,
        initial_delivery_count=0,
    )


def condition_of(events: list[Event]) -> str:
    """Return the condition with which a violation ended the connection."""
    assert [event[0] for event in events][-1:] == [FAILED], events
    return str(events[-1][1].condition)
