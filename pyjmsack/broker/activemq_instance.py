"""ActiveMQ Classic's configuration and command line, and the lines of its log that pyjmsack reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from pyjmsack.broker.instance import Instance, as_properties_line
from pyjmsack.broker.tls import with_activemq_tls
from pyjmsack.broker.wanted import with_activemq_wishes

__all__ = ["ActiveMQInstance"]

_MAIN = "org.apache.activemq.console.Main"


@dataclass(frozen=True)
class ActiveMQInstance(Instance):
    """A broker of ActiveMQ Classic. ``logins`` contains the passwords in plain text, because this broker cannot read
    hashed passwords.
    """

    scheduler: bool = False
    transformer: str = "native"

    etc_name: ClassVar[str] = "activemq"

    def _properties(self) -> Mapping[str, object]:
        return {
            "pyjmsack.amqp.port": self.amqp_port,
            "pyjmsack.stomp.port": self.stomp_port,
            "pyjmsack.data": self.directory / "data",
            "pyjmsack.scheduler": str(self.scheduler).lower(),
            "pyjmsack.transformer": self.transformer,
            "activemq.home": self.directory,
            "activemq.base": self.directory,
            "activemq.conf": self.etc,
            "activemq.data": self.directory / "data",
            "java.security.auth.login.config": self.etc / self._login_configuration(),
        }

    def _login_configuration(self) -> str:
        if self.logins is None:
            return "login-open.config"
        return "login-anonymous.config" if self.anonymous else "login.config"

    def _with_wishes(self, name: str, text: bytes) -> bytes:
        if name != "activemq.xml":
            return text
        return with_activemq_wishes(with_activemq_tls(text, self.tls), self.wanted)

    def _main(self) -> Sequence[str]:
        # The file is named by its path, because there is no form of a file: URL that all versions read. The file is not
        # validated, because it has ${...} where the schema expects true or false.
        return [_MAIN, "start", f"xbean:{quote(str(self.etc / 'activemq.xml'))}?validate=false"]

    def _login_files(self) -> Mapping[str, Iterable[str]]:
        logins = self.logins or {}
        return {
            "users.properties": [as_properties_line(name, password) for name, password in logins.items()],
            "groups.properties": [as_properties_line("users", *logins)],
        }

    def port_is_taken(self, log: str) -> bool:
        """Whether the log has the text of the exception that ends the broker if a port is taken."""
        return "Failed to bind to server socket" in log

    def listens(self, log: str) -> bool:
        """Whether the log has a line for the port of each connector. The host in this line does not count, because it
        is the name that 127.0.0.1 has on this machine.
        """
        listening = [line for line in log.splitlines() if "Listening for connections at: " in line]
        secure = "" if self.tls is None else "+ssl"
        ports = ((f"amqp{secure}", self.amqp_port), (f"stomp{secure}", self.stomp_port))
        return all(any(f" {scheme}://" in line and f":{port}?" in line for line in listening) for scheme, port in ports)
