"""``TextMessage``: a body of text, or no body."""

from __future__ import annotations

from typing import ClassVar

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.base import Message

__all__ = ["TextMessage"]


class TextMessage(Message):
    """A message with text. ``None`` means that there is no text, which is not the same as ``""`` (S170).

    Args:
        text: the text.

    Raises:
        MessageFormatException: ``text`` is neither ``str`` nor ``None``.
    """

    __slots__ = ()

    wire_type: ClassVar[int] = 5
    _body_is: ClassVar[str] = "a text; read `text`"

    def __init__(self, text: str | None = None) -> None:
        super().__init__()
        self._body = _check_text(text)

    @property
    def text(self) -> str | None:
        """The text. ``None`` if there is no text.

        Raises (on setting):
            MessageFormatException: the value is neither ``str`` nor ``None``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        return self._body

    @text.setter
    def text(self, value: str | None) -> None:
        self._check_body_writeable()
        self._body = _check_text(value)


def _check_text(text: object) -> str | None:
    if text is not None and not isinstance(text, str):
        raise MessageFormatException(f"text: expected str or None, not {type(text).__name__}")
    return text
