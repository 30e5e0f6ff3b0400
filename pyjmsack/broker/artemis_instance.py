"""Artemis' configuration and command line, and the lines of its log that pyjmsack reads."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pyjmsack.broker.instance import Instance, as_properties_line, check_logins
from pyjmsack.broker.tls import with_artemis_tls
from pyjmsack.broker.wanted import with_artemis_wishes

__all__ = ["ArtemisInstance", "hash_passwords"]

_OPEN_MAIN = "org.apache.activemq.artemis.core.server.embedded.Main"
_SECURED_MAIN = "org.apache.activemq.artemis.cli.Artemis"  # this class can check logins; it starts 0.2 s slower
_HASH_ROUNDS = 1024  # the broker's own default for PBKDF2


class ArtemisInstance(Instance):
    """A broker of Artemis. Its ``logins`` have hashed passwords, as :func:`hash_passwords` returns them."""

    etc_name: ClassVar[str] = "artemis"

    def _properties(self) -> Mapping[str, object]:
        return {
            "pyjmsack.security": str(self.logins is not None).lower(),
            "pyjmsack.amqp.port": self.amqp_port,
            "pyjmsack.stomp.port": self.stomp_port,
            "pyjmsack.data": self.directory / "data",
            "pyjmsack.etc.uri": self.etc.as_uri(),
            "artemis.home": self.distribution.home,
            "artemis.instance": self.directory,
            "artemis.instance.etc": self.etc,
            "java.security.auth.login.config": self.etc
            / ("login-anonymous.config" if self.anonymous else "login.config"),
        }

    def _with_wishes(self, name: str, text: bytes) -> bytes:
        if name != "broker.xml":
            return text
        return with_artemis_wishes(with_artemis_tls(text, self.tls), self.wanted)

    def _main(self) -> Sequence[str]:
        return [_SECURED_MAIN, "run"] if self.logins is not None else [_OPEN_MAIN, str(self.directory)]

    def _login_files(self) -> Mapping[str, Iterable[str]]:
        logins = self.logins or {}
        return {
            "users.properties": [as_properties_line(name, hashed) for name, hashed in logins.items()],
            "roles.properties": [as_properties_line("amq", *logins)],
        }

    def port_is_taken(self, log: str) -> bool:
        """Whether the log has "Failed to bind acceptor". The end of the process is not a reliable sign, because one of
        the two main classes of Artemis goes on running after this error.
        """
        return "AMQ229230" in log

    def listens(self, log: str) -> bool:
        """Whether the log has the line of a started acceptor (``AMQ221020``) for both ports."""
        started = [line for line in log.splitlines() if "AMQ221020" in line]
        ports = (self.amqp_port, self.stomp_port)
        return all(any(f" 127.0.0.1:{port} " in line for line in started) for port in ports)


def hash_passwords(users: Mapping[str, str]) -> dict[str, str]:
    """Hash the passwords as ``artemis user add`` does, so that memory and disk hold no password in plain text.

    Raises:
        ValueError: see :func:`pyjmsack.broker.instance.check_logins`.
    """
    check_logins(users)
    return {name: _hash(password) for name, password in users.items()}


def _hash(password: str) -> str:
    salt = secrets.token_bytes(32)
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, _HASH_ROUNDS, 64)
    return f"ENC({_HASH_ROUNDS}:{salt.hex().upper()}:{digest.hex().upper()})"
