"""``Message``: headers, properties, acknowledgement, and a body that only a received message can have."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from pyjmsack.errors import (
    IllegalStateException,
    MessageFormatException,
    MessageNotWriteableException,
    UnsupportedFeatureException,
)
from pyjmsack.message.headers import Acknowledger, Headers, LazyContent
from pyjmsack.message.properties import RESERVED, TypedProperties
from pyjmsack.types import Outcome

__all__ = ["Acknowledger", "LazyContent", "Message", "shown_id"]

_LONGEST_SHOWN = 256
"""The largest number of characters of a message id in a log or an error."""

T = TypeVar("T")


class Message(Headers, TypedProperties):
    """A message without a body of its own (S151).

    If no message class covers the body of a received message, ``body`` is the decoded AMQP value. Headers may always be
    set (S163), except while the message waits for its completion listener (S73).
    """

    __slots__ = ()

    wire_type: ClassVar[int] = 0
    """The value of the annotation ``x-opt-jms-msg-type`` (S165): 0 for a message without a body of its own, 1 for an
    object, 2 for a map, 3 for bytes, 4 for a stream, 5 for a text."""
    _body_is: ClassVar[str] = "what the sender chose, or nothing; read `body`"
    """The words of an error about an attribute that this class does not have: the kind of the body, and the attribute
    to read instead.
    """

    @property
    def body(self) -> Any:
        """The body. ``None`` if there is no body."""
        return self._body

    def _prepare(self) -> None:
        """Do the work that the first read of the body would do. Called on a thread, for a large message of asyncio."""

    def get_body(self, type: type[T]) -> T | None:
        """Return the body as ``type``.

        >>> TextMessage("hello").get_body(str)
        'hello'

        Args:
            type: the type that the body must have: ``str`` for a text message, ``bytes``, ``dict`` for a map message,
                ``list`` for a stream message, or the type of the object in an object message.

        Returns:
            The body, or ``None`` if there is no body.

        Raises:
            MessageFormatException: the body has another type (S176).
        """
        body = self.body
        if body is not None and not isinstance(body, type):
            raise MessageFormatException(f"{self!r} has a body of {_name(body.__class__)}, not {_name(type)}")
        return body

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Return whether ``get_body(type)`` would succeed. Without a body the result is ``True`` for each type.

        Args:
            type: the type that the body must have, as for :meth:`get_body`.
        """
        body = self.body
        return body is None or isinstance(body, type)

    def clear_body(self) -> None:
        """Remove the body and make it writeable. Headers and properties stay (S163)."""
        self._check_unlocked()
        self._body = None
        self._body_readonly = False

    def clear_properties(self) -> None:
        """Remove all properties and make them writeable. Headers and body stay (S163)."""
        self._check_unlocked()
        self._properties = None
        self._properties_readonly = False
        for slot, _ in RESERVED.values():
            setattr(self, slot, None)

    @property
    def _typed_encoding(self) -> bool:
        """The property ``JMS_AMQP_TYPED_ENCODING`` (S164)."""
        return False

    def _set_typed_encoding(self, typed: bool) -> None:
        raise MessageFormatException("property 'JMS_AMQP_TYPED_ENCODING' can be set on an object message only")

    def _check_body_writeable(self) -> None:
        self._check_unlocked()
        if self._body_readonly:
            raise MessageNotWriteableException(f"the body of {self!r} is read-only; clear_body() makes it writeable")

    def acknowledge(self) -> Any:
        """Acknowledge by the rules of the session's mode (S10-S12, S30-S38).

        In CLIENT mode this call acknowledges all messages that the session delivered. In the individual modes it
        acknowledges this message alone. In the other modes, and for a message that was not received, it does nothing.

        Returns:
            ``None``. For a message that ``pyjmsack.aio`` received, an awaitable.

        Raises:
            IllegalStateException: the session is closed.
        """
        ack = self._ack
        return None if ack is None else ack.acknowledge(self)

    def accept(self) -> Any:
        """Tell the broker that this one message was processed.

        Returns:
            ``None``. For a message that ``pyjmsack.aio`` received, an awaitable.

        Raises:
            IllegalStateException: the session's mode allows no outcome for a single message (S38).
        """
        return self._settle(Outcome.ACCEPTED)

    def release(self) -> Any:
        """Give this one message back to the broker. The delivery is not counted.

        Returns:
            ``None``. For a message that ``pyjmsack.aio`` received, an awaitable.

        Raises:
            IllegalStateException: the session's mode allows no outcome for a single message (S38).
        """
        return self._settle(Outcome.RELEASED)

    def reject(self) -> Any:
        """Tell the broker that this one message cannot be processed. The broker makes the message a dead letter.

        Returns:
            ``None``. For a message that ``pyjmsack.aio`` received, an awaitable.

        Raises:
            IllegalStateException: the session's mode allows no outcome for a single message (S38).
        """
        return self._settle(Outcome.REJECTED)

    def modify(self, *, delivery_failed: bool = True, undeliverable_here: bool = False) -> Any:
        """Give this one message back to the broker.

        Args:
            delivery_failed: whether this delivery is counted.
            undeliverable_here: whether this consumer does not get the message again. If this is true,
                ``delivery_failed`` must be true.

        Returns:
            ``None``. For a message that ``pyjmsack.aio`` received, an awaitable.

        Raises:
            UnsupportedFeatureException: ``undeliverable_here`` is true and ``delivery_failed`` is not, or this broker
                would replace the outcome by another outcome (S119).
            IllegalStateException: the session's mode allows no outcome for a single message (S38).
        """
        if delivery_failed:
            failed = Outcome.MODIFIED_FAILED_UNDELIVERABLE if undeliverable_here else Outcome.MODIFIED_FAILED
            return self._settle(failed)
        if undeliverable_here:
            raise UnsupportedFeatureException(
                "modify(delivery_failed=False, undeliverable_here=True): JMS_AMQP_ACK_TYPE has no value for this"
                " outcome; use modify(undeliverable_here=True), which counts the delivery, or release()"
            )
        # the outcome "modified" without a flag is the same as "released" (AMQP 1.0, section 3.4.5)
        return self._settle(Outcome.RELEASED)

    def _settle(self, outcome: Outcome) -> Any:
        ack = self._ack
        if ack is None or not ack.allows_outcome:
            raise IllegalStateException(
                f"the outcome {outcome.name} for one message needs a message that was received in a session with"
                " CLIENT_ACKNOWLEDGE or INDIVIDUAL_ACKNOWLEDGE"
            )
        return ack.settle(self, outcome)

    def __repr__(self) -> str:
        return f"<{_name(self.__class__)} {shown_id(self._message_id)} to {self._destination!r}>"


def shown_id(message_id: str | None) -> str:
    """Return a message id for a log or an error. A sender chooses the id, so it may be long, or have line feeds and
    escape sequences of terminals."""
    if message_id is None or (len(message_id) <= _LONGEST_SHOWN and message_id.isprintable()):
        return str(message_id)
    return ascii(message_id[:_LONGEST_SHOWN]) + "…" * (len(message_id) > _LONGEST_SHOWN)


def _name(kind: type[Any]) -> str:
    return kind.__name__
