"""The acknowledge modes of Spring's containers. They differ from the modes of JMS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyjmsack.types import AckMode

__all__ = ["NewMode", "mode_of"]


@dataclass(frozen=True, slots=True)
class NewMode:
    """The mode of pyjmsack that does the same or is safer, and the reason."""

    mode: AckMode
    why: str


_TRANSACTED: Final = NewMode(
    AckMode.SESSION_TRANSACTED,
    "the same: a message whose listener raised comes again; the generated code commits after the listener",
)
_MODES: Final = {
    "auto": NewMode(
        AckMode.AUTO_ACKNOWLEDGE,
        "safer: Spring's container acknowledges before the listener and does not redeliver; here the message comes"
        " again when the listener raised",
    ),
    "client": NewMode(
        AckMode.AUTO_ACKNOWLEDGE,
        "the same: Spring's container acknowledges after the listener returned, and so does AUTO_ACKNOWLEDGE here",
    ),
    "dupsok": NewMode(
        AckMode.DUPS_OK_ACKNOWLEDGE,
        "messages are acknowledged late and together: after a crash, messages that were processed may come again",
    ),
    "transacted": _TRANSACTED,
    "individual": NewMode(AckMode.INDIVIDUAL_ACKNOWLEDGE, "the listener acknowledges each message itself"),
    "none": NewMode(AckMode.NO_ACKNOWLEDGE, "a crash loses what was sent ahead"),
}
_NUMBERS: Final = {"0": "transacted", "1": "auto", "2": "client", "3": "dupsok", "4": "individual", "101": "individual"}


def mode_of(text: str, *, transacted: bool = False) -> NewMode | None:
    """Return the mode for the name or number of an acknowledge mode of Java; ``None`` for no such name.

    Args:
        text: ``AUTO``, ``CLIENT_ACKNOWLEDGE``, ``Session.DUPS_OK_ACKNOWLEDGE``, ``1`` …; empty is AUTO.
        transacted: whether ``sessionTransacted`` is set. If it is set, ``text`` does not matter.
    """
    if transacted:
        return _TRANSACTED
    plain = text.strip().rpartition(".")[2].lower().replace("-", "").replace("_", "")
    plain = plain.removesuffix("acknowledge").removeprefix("session") or "auto"
    return _MODES.get(_NUMBERS.get(plain, plain))
