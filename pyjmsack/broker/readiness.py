"""Finds out when a broker is ready: its log names the ports, and it answers the AMQP header on one of them."""

from __future__ import annotations

import secrets
import socket
import ssl
import time

from pyjmsack.broker.errors import BrokerError, BrokerExitedError, PortTakenError
from pyjmsack.broker.instance import Instance
from pyjmsack.broker.process import BrokerProcess

__all__ = ["answers_amqp", "answers_stomp", "await_ready", "check_port_free", "pick_port"]

_HOST = "127.0.0.1"
# the header of SASL, version 1.0.0; a broker that is ready answers with the same bytes
_AMQP_HEADER = b"AMQP\x03\x01\x00\x00"
_STOMP_CONNECT = b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"
_POLL_SECONDS = 0.02
_ANSWER_SECONDS = 1.0
_TAIL_CHARACTERS = 3000

# The ports are below the range from which Linux and macOS take the local ports of outgoing connections. With a port of
# this range, another process could get the port while the broker is down, and a client that reconnects could connect to
# itself.
_FIRST_PORT = 20_000
_PORT_COUNT = 12_000
_PICK_TRIES = 100


def pick_port() -> int:
    """Return a port on which no process listens now. The choice uses ``secrets``, because test processes often have the
    same random seed.

    Raises:
        BrokerError: there is no free port.
    """
    for _ in range(_PICK_TRIES):
        port = _FIRST_PORT + secrets.randbelow(_PORT_COUNT)
        try:
            check_port_free(port)
        except PortTakenError:
            continue
        return port
    raise BrokerError(
        f"There is no free port between {_FIRST_PORT} and {_FIRST_PORT + _PORT_COUNT}; give ports of your own."
    )


def check_port_free(port: int) -> None:
    """Check that no process listens on a port. The broker would check this too, but a second later.

    Raises:
        PortTakenError: another process listens on the port.
    """
    with socket.socket() as probe:
        # with this option a port in the state TIME_WAIT counts as free, as it does for the broker
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise PortTakenError(f"Port {port} on {_HOST} is not free: {error.strerror}.") from error


def await_ready(process: BrokerProcess, instance: Instance, log_start: int, timeout: float) -> str:
    """Wait until the broker serves AMQP and STOMP, and return the log of this start. ``log_start`` is the size of the
    log in bytes before the start.

    Raises:
        PortTakenError: another process took a port in the meantime.
        BrokerExitedError: the process of the broker ended.
        BrokerError: the broker is not ready within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        exited = not process.running  # read first, so that the log of a broker that ended is complete
        log = _read_log(instance, log_start)
        if instance.port_is_taken(log):
            raise PortTakenError(f"Another process took a port of the broker. {_tail(log)}")
        if exited:
            raise BrokerExitedError(f"The broker ended with exit code {process.exit_code}. {_tail(log)}")
        if instance.listens(log) and _serves(instance):
            return log
        time.sleep(_POLL_SECONDS)
    raise BrokerError(f"The broker was not ready after {timeout:g} s. {_tail(_read_log(instance, log_start))}")


def _serves(instance: Instance) -> bool:
    if instance.tls is not None and instance.tls.clients is not None:
        return _refuses_strangers(instance.amqp_port)
    return answers_amqp(instance.amqp_port, tls=instance.tls is not None)


def answers_amqp(port: int, *, tls: bool = False) -> bool:
    """Whether a broker answers the AMQP header on this port of 127.0.0.1."""
    return _ask(port, _AMQP_HEADER, len(_AMQP_HEADER), tls=tls) == _AMQP_HEADER


def answers_stomp(port: int) -> bool:
    """Whether a broker answers a STOMP client on this port of 127.0.0.1, even if it refuses the client."""
    return bool(_ask(port, _STOMP_CONNECT, 1))


def _ask(port: int, question: bytes, size: int, *, tls: bool = False) -> bytes:
    """Send ``question`` to a port, and return the first bytes of the answer, or no bytes if there is no answer."""
    try:
        with socket.create_connection((_HOST, port), _ANSWER_SECONDS) as probe:
            if not tls:
                probe.sendall(question)
                return probe.recv(size, socket.MSG_WAITALL)
            with _unverified().wrap_socket(probe) as secured:
                secured.sendall(question)
                return secured.recv(size)  # one read is enough, because the first record of TLS has these few bytes
    except OSError:
        return b""


def _refuses_strangers(port: int) -> bool:
    """Whether a broker on this port of 127.0.0.1 refuses a client because the client has no certificate."""
    try:
        probe = socket.create_connection((_HOST, port), _ANSWER_SECONDS)
        with probe, _unverified().wrap_socket(probe) as secured:
            secured.recv(1)  # in TLS 1.3 the refusal comes after the handshake
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        pass
    return False


def _unverified() -> ssl.SSLContext:
    """Return a TLS context that trusts every certificate. This is safe, because the client sends only a protocol
    header.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _read_log(instance: Instance, start: int) -> str:
    try:
        with instance.log_path.open("rb") as stream:
            stream.seek(start)
            return stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _tail(log: str) -> str:
    return f"End of its log:\n{log[-_TAIL_CHARACTERS:].strip() or '(empty)'}"
