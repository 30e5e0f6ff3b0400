"""The options of all Java clients, by client. An error or ``pyjmsack migrate`` needs them, so both import them late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.java_options.activemq import ACTIVEMQ
from pyjmsack.java_options.artemis import ARTEMIS
from pyjmsack.java_options.model import JavaOption
from pyjmsack.java_options.qpid import QPID

__all__ = ["JAVA_OPTIONS"]

JAVA_OPTIONS: Final[Mapping[str, Mapping[str, JavaOption]]] = {"artemis": ARTEMIS, "activemq": ACTIVEMQ, "qpid": QPID}
"""By client, its options by name."""
