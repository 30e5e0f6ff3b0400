"""Decides which value each parameter of a listener gets. The annotation of the parameter decides."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyjmsack.app.typed import build
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import Message
from pyjmsack.message.properties import HEADER_NAMES

__all__ = ["Arguments", "Header"]

_REQUIRED: Final = object()


@dataclass(frozen=True)
class Header:
    """Marks a parameter of a listener that gets a property or a header of the message:
    ``region: Annotated[str, Header("region")]``.

    Args:
        name: the name of a property, or a header by its JMS name such as ``JMSCorrelationID``.
        default: the value for a message without this property or header. If there is no default, a message without the
            property or header counts as an error of the listener.
    """

    name: str
    default: Any = _REQUIRED

    def of(self, message: Message, kind: Any) -> Any:
        """Return the property or header of a message.

        Args:
            message: the received message.
            kind: the type of the parameter.

        Raises:
            MessageFormatException: the value is missing and there is no default, or the value has another type.
        """
        header = HEADER_NAMES.get(self.name)
        value = message.properties.get(self.name) if header is None else getattr(message, header)
        if value is None and self.default is not _REQUIRED:
            return self.default
        try:
            return build(kind, value, f"the header {self.name!r}")
        except MessageFormatException:
            if value is None:
                raise MessageFormatException(f"the message has no header {self.name!r}") from None
            raise


@dataclass(frozen=True)
class Arguments:
    """The parameters of one listener."""

    sources: tuple[tuple[str, str, Any, Header | None], ...]
    """For each parameter: its name, the source of its value (body, message, session, header), its type, its header."""

    @classmethod
    def of(cls, function: Callable[..., Any], session: type) -> Arguments:
        """Read the parameters of a function. ``session`` is the session class of the face.

        Raises:
            TypeError: an annotation cannot be read, or two parameters would get the body.
        """
        name = getattr(function, "__qualname__", repr(function))
        target = function if inspect.isroutine(function) else type(function).__call__
        try:
            hints = typing.get_type_hints(target, include_extras=True)
        except NameError as error:
            raise TypeError(
                f"listener {name}: {error}; import the types of annotations outside of `if TYPE_CHECKING:`"
            ) from error
        sources = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(
                    f"listener {name}: the parameter {parameter} cannot be given by its name; expected no *args,"
                    " no **kwargs and no parameter before a /"
                )
            source = _source(hints.get(parameter.name, Any), session)
            # a parameter keeps its default if the source of its value would be the body
            if parameter.default is parameter.empty or source[0] != "body":
                sources.append((parameter.name, *source))
        bodies = [source[0] for source in sources if source[1] == "body"]
        if len(bodies) > 1:
            raise TypeError(
                f"listener {name}: the parameters {', '.join(bodies)} would all get the body; annotate them with"
                " Message, Session or Annotated[..., Header('name')]"
            )
        return cls(tuple(sources))

    @property
    def body(self) -> tuple[Any] | None:
        """The annotation of the parameter that gets the body. ``None`` if there is no such parameter."""
        return next(((kind,) for _, source, kind, _ in self.sources if source == "body"), None)

    def bind(self, message: Message, session: object, from_message: Callable[[Message, Any], Any]) -> dict[str, Any]:
        """Return, for one message, the value of each parameter by the name of the parameter.

        Args:
            message: the received message.
            session: the session of the message.
            from_message: returns the body for an annotation (:meth:`.Converter.from_message`).

        Raises:
            MessageFormatException: the message does not fit a parameter.
        """
        return {
            name: self._value(source, kind, header, message, session, from_message)
            for name, source, kind, header in self.sources
        }

    @staticmethod
    def _value(
        source: str,
        kind: Any,
        header: Header | None,
        message: Message,
        session: object,
        from_message: Callable[[Message, Any], Any],
    ) -> Any:
        if header is not None:
            return header.of(message, kind)
        if source == "message":
            if not isinstance(message, kind):
                raise MessageFormatException(f"the listener takes {kind.__name__}, not {message!r}")
            return message
        return session if source == "session" else from_message(message, kind)


def _source(annotation: Any, session: type) -> tuple[str, Any, Header | None]:
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *extras = typing.get_args(annotation)
        for extra in extras:
            if isinstance(extra, Header):
                return "header", kind, extra
        return _source(kind, session)
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return "message", annotation, None
    if isinstance(annotation, type) and issubclass(annotation, session):
        return "session", annotation, None
    return "body", annotation, None
