"""The acknowledge modes of Spring's listener containers. They differ from the modes of JMS with the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyjmsack.types import AckMode

__all__ = ["NewMode", "mode_of"]


@dataclass(frozen=True, slots=True)
class NewMode:
    """The acknowledge mode of pyjmsack that has the same effect or is safer, and the reason."""

    mode: AckMode
    why: str


_TRANSACTED: Final = NewMode(
    AckMode.SESSION_TRANSACTED,
    "the effect is the same: a message whose listener raised comes again; the generated code commits after the"
    " listener",
)
_MODES: Final = {
    "auto": NewMode(
        AckMode.AUTO_ACKNOWLEDGE,
        "safer: Spring's container acknowledges before the listener and does not redeliver; here the message comes"
        " again when the listener raised",
    ),
    "client": NewMode(
        AckMode.AUTO_ACKNOWLEDGE,
        "the effect is the same: Spring's container and AUTO_ACKNOWLEDGE acknowledge after the listener returned",
    ),
    "dupsok": NewMode(
        AckMode.DUPS_OK_ACKNOWLEDGE,
        "messages are acknowledged late and together: after a crash, messages that were processed may come again",
    ),
    "transacted": _TRANSACTED,
    "individual": NewMode(AckMode.INDIVIDUAL_ACKNOWLEDGE, "the listener acknowledges each message itself"),
    "none": NewMode(AckMode.NO_ACKNOWLEDGE, "a crash loses the messages that the broker sent ahead"),
}
_NUMBERS: Final = {"0": "transacted", "1": "auto", "2": "client", "3": "dupsok", "4": "individual", "101": "individual"}


def mode_of(text: str, *, transacted: bool = False) -> NewMode | None:
    """Return the mode for an acknowledge mode of Java. Return ``None`` if Java has no mode with this name or number.

    Args:
        text: ``AUTO``, ``CLIENT_ACKNOWLEDGE``, ``Session.DUPS_OK_ACKNOWLEDGE``, ``1`` …; empty is AUTO.
        transacted: whether ``sessionTransacted`` is true. If so, ``text`` does not matter.
    """
    if transacted:
        return _TRANSACTED
    plain = text.strip().rpartition(".")[2].lower().replace("-", "").replace("_", "")
    plain = plain.removesuffix("acknowledge").removeprefix("session") or "auto"
    return _MODES.get(_NUMBERS.get(plain, plain))
