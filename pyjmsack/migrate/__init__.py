"""Translates the configuration of a Java or Spring service for pyjmsack: ``pyjmsack migrate``.

:func:`migrate` reads URLs, files and folders. :func:`as_app`, :func:`as_python`, :func:`as_toml` and
:func:`as_environment` write the result. The package opens no connection, reads only the given files, and keeps no
secret.
"""

from pyjmsack.migrate.broker_xml import PLAIN
from pyjmsack.migrate.discover import migrate
from pyjmsack.migrate.emit import as_environment, as_python, as_toml
from pyjmsack.migrate.emit_app import as_app
from pyjmsack.migrate.model import (
    USER,
    Factory,
    Findings,
    Listener,
    Place,
    Row,
    Schedule,
    Settings,
    Unreadable,
    Verdict,
)
from pyjmsack.migrate.remarks import open_text
from pyjmsack.migrate.serving import destination_of

__all__ = [
    "PLAIN",
    "USER",
    "Factory",
    "Findings",
    "Listener",
    "Place",
    "Row",
    "Schedule",
    "Settings",
    "Unreadable",
    "Verdict",
    "as_app",
    "as_environment",
    "as_python",
    "as_toml",
    "destination_of",
    "migrate",
    "open_text",
]
