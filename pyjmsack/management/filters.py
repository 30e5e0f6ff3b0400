"""Translates a selector of JMS for the management of Artemis, which has other names for the headers."""

from __future__ import annotations

import re

from pyjmsack import InvalidSelectorException

__all__ = ["core_filter"]

_HEADERS = {
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSExpiration": "AMQExpiration",
    "JMSMessageID": "AMQUserID",
}
_MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}
_TOKENS = re.compile(
    r"(?P<text>'(?:[^']|'')*')"
    r"|JMSDeliveryMode\s*(?P<compare>=|<>)\s*'(?P<mode>NON_PERSISTENT|PERSISTENT)'"
    r"|(?P<name>[A-Za-z_$][\w$]*)"
)


def core_filter(selector: str) -> str:
    """Return the selector with Artemis' names of the headers. Texts in quotes stay as they are.

    Raises:
        InvalidSelectorException: the selector does not compare ``JMSDeliveryMode`` by ``=`` or ``<>`` with one of its
            values.
    """
    return _TOKENS.sub(_renamed, selector)


def _renamed(found: re.Match[str]) -> str:
    if found["mode"]:
        return f"AMQDurable {found['compare']} '{_MODES[found['mode']]}'"
    if found["name"] == "JMSDeliveryMode":
        raise InvalidSelectorException(
            "this command can compare JMSDeliveryMode only as JMSDeliveryMode = 'PERSISTENT' or <> 'PERSISTENT'"
        )
    return _HEADERS.get(found[0], found[0])
