"""The options of all Java clients. Only ``pyjmsack migrate`` and the errors of the URL parser need this table.
Therefore both import the table only when they need it.
"""

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
