"""Destinations are values: a kind, a name, and options that matter only to the code that opens the destination.

Equality and hash look at kind and name, never at options. So ``Queue("orders?consumer.prefetchSize=1")`` equals
``Queue("orders")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import parse_qsl

from pyjmsack.errors import IllegalStateException, InvalidDestinationException
from pyjmsack.java_options.names import JavaNames

__all__ = ["Destination", "Queue", "TemporaryQueue", "TemporaryTopic", "Topic", "named"]

D = TypeVar("D", bound="_Temporary")
T = TypeVar("T", bound="Destination")


class Destination(JavaNames):
    """A queue or a topic.

    Args:
        name: the name, with Java-style options after ``?`` if wanted (``orders?consumer.prefetchSize=10``).

    Raises:
        InvalidDestinationException: the name is empty or not a string (S67).
    """

    __slots__ = ("_hash", "_several", "name", "options")

    is_topic: ClassVar[bool] = False
    is_temporary: ClassVar[bool] = False
    jms_type: ClassVar[int] = 0
    """Value of the annotation ``x-opt-jms-dest`` (S165): 0 queue, 1 topic, 2 temporary queue, 3 temporary topic."""
    capability: ClassVar[str] = "queue"
    """The capability that AMQP sends with the name. Without this capability Artemis would create a topic, and drop the
    messages that are sent to it (S165)."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.partition("?")[0].strip():
            raise InvalidDestinationException(f"destination name {name!r}: expected a non-empty string")
        plain, _, query = name.partition("?")
        self.name: str = plain
        self.options: Mapping[str, str] = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        self._hash = hash((self.jms_type, plain))
        self._several = False
        """Whether a program wrote several names as one text, ``a,b``, which ActiveMQ's client understands. A session
        refuses such a destination if its broker would take the text as one name, or lose a part of it."""

    @classmethod
    def _literal(cls: type[T], name: str) -> T:
        """Return the destination with exactly this name, ``?`` included. A received name has no options, because
        otherwise its sender could set options in this program.

        Raises:
            InvalidDestinationException: the name is blank.
        """
        if not name.strip():
            raise InvalidDestinationException(f"destination name {name!r}: expected a non-empty string")
        made = cls("literal")
        made.name, made._hash = name, hash((cls.jms_type, name))
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Destination) and other.jms_type == self.jms_type and other.name == self.name

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Queue(Destination):
    """A queue: each message goes to one consumer (point-to-point)."""

    __slots__ = ()


class Topic(Destination):
    """A topic: each message goes to every subscription (publish/subscribe)."""

    __slots__ = ()
    is_topic = True
    jms_type = 1
    capability = "topic"


_SCHEMES: Final = ("queue", "topic", "temp-queue", "temp-topic")
N = TypeVar("N", Queue, Topic)


def named(kind: type[N], name: str) -> N:
    """Return a destination by a name that may begin with ``queue://`` or ``topic://``, as ActiveMQ's client reads it.

    A name such as ``temp-queue://ID:...``, which ActiveMQ Classic gives to temporary destinations, stays as it is,
    because the whole text is the address over AMQP. A program may have such a name from a ``reply_to``. A text with
    commas, ``a,b``, names several destinations. Each session decides whether its broker understands such a text.

    Raises:
        InvalidDestinationException: the name is empty, or names a topic where a queue is wanted, or a queue where a
            topic is wanted.
    """
    found = _named(kind, name)
    found._several = "," in found.name
    return found


def _named(kind: type[N], name: str) -> N:
    scheme, mark, rest = name.partition("://") if isinstance(name, str) else ("", "", "")
    if not mark or scheme.lower() not in _SCHEMES:
        return kind(name)
    if scheme.lower() == ("topic" if kind.is_topic else "queue"):
        return kind(rest)
    if scheme.lower() == ("temp-topic" if kind.is_topic else "temp-queue") and rest.startswith("ID:"):
        return kind(name)
    what = scheme.lower().replace("temp-", "temporary ")
    instead = f"create_{what.replace(' ', '_')}({'' if 'temp' in what else repr(rest)})"
    raise InvalidDestinationException(
        f"{name!r} names a {what}, but a {'topic' if kind.is_topic else 'queue'} was expected; use {instead}"
    )


class _Temporary(Destination):
    """A destination that lives as long as the connection that made it (S130). Only ``delete()`` ends it earlier.

    Args:
        name: the name that the broker gave to the destination.
        delete: carries out :meth:`delete`. ``None`` means that another connection made the destination, so it cannot be
            deleted here.
    """

    __slots__ = ("_delete", "deleted")
    is_temporary = True

    def __init__(self, name: str, delete: Callable[[], Any] | None = None) -> None:
        super().__init__(name)
        self._delete = delete
        self.deleted = False

    def delete(self) -> Any:
        """Delete the destination at the broker. In ``pyjmsack.aio`` this is awaited. A second call does no harm.

        Raises:
            IllegalStateException: a consumer of this connection still uses it (S131), or this connection did not make
                it.
        """
        if self._delete is None:
            raise IllegalStateException(
                f"{self.name} belongs to another connection; only the connection that created it can delete it"
            )
        return self._delete()

    def __enter__(self: D) -> D:
        return self

    def __exit__(self, *exc: object) -> None:
        self.delete()


class TemporaryQueue(_Temporary, Queue):
    """A queue that lives as long as the connection that made it."""

    __slots__ = ()
    jms_type = 2
    capability = "temporary-queue"


class TemporaryTopic(_Temporary, Topic):
    """A topic that lives as long as the connection that made it."""

    __slots__ = ()
    jms_type = 3
    capability = "temporary-topic"
