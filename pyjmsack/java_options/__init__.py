"""The replacements of Java clients' options: one table for the hints of the URL parser and for ``pyjmsack migrate``.

Options of Qpid JMS and ActiveMQ Classic that this library knows by the same name are rows of ``pyjmsack.uri``, and not
repeated here. This package has the rest: every option of the Artemis client, and the other options of the other two
clients. The tests compare it with the setters of the clients' own classes.
"""

from pyjmsack.java_options.activemq import ACTIVEMQ
from pyjmsack.java_options.artemis import ARTEMIS
from pyjmsack.java_options.model import Fate, JavaOption, Translation
from pyjmsack.java_options.qpid import QPID
from pyjmsack.java_options.schemes import JAVA_SCHEMES, JavaScheme

__all__ = [
    "ACTIVEMQ",
    "ARTEMIS",
    "JAVA_OPTIONS",
    "JAVA_SCHEMES",
    "QPID",
    "Fate",
    "JavaOption",
    "JavaScheme",
    "Translation",
]

JAVA_OPTIONS = {"artemis": ARTEMIS, "activemq": ACTIVEMQ, "qpid": QPID}
"""By client, its options by name."""
