"""The JMS messages (S150-S176): one module per class; headers and properties are shared by all."""

from __future__ import annotations

from pyjmsack.message.base import Acknowledger, LazyContent, Message
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.factory import to_message
from pyjmsack.message.properties import Properties
from pyjmsack.message.text import TextMessage

__all__ = ["Acknowledger", "BytesMessage", "LazyContent", "Message", "Properties", "TextMessage", "to_message"]
