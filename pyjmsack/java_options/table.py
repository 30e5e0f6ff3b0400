"""The options of all Java clients. Only an error of the URL parser and ``pyjmsack migrate`` need this table, so both
import it late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.java_options.activemq import ACTIVEMQ
from pyjmsack.java_options.artemis import ARTEMIS
from pyjmsack.java_options.model import JavaOption
from pyjmsack.java_options.qpid import QPID

__all__ = ["JAVA_OPTIONS"]

JAVA_OPTIONS: Final[Mapping[str, Mapping[str, JavaOption]]] = {"artemis": ARTEMIS, "activemq": ACTIVEMQ, "qpid": QPID}
"""For each Java client, its options by name."""
