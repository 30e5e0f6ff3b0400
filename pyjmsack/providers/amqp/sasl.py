"""The client's side of SASL, the login of AMQP (AMQP 1.0 5.3). This module takes bytes and returns bytes.

This module does not use the SASL of proton, because the encryption by TLS is the work of the driver. proton offers the
mechanism EXTERNAL only over its own TLS. If proton does not encrypt the stream itself, proton offers the mechanism
PLAIN only with a switch that would also allow PLAIN without encryption.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial

from pyjmsack.errors import ConnectionLostException, JMSException, JMSSecurityException
from pyjmsack.providers.amqp.mechanisms import Mechanism, create, mechanisms
from pyjmsack.providers.amqp.name_sizes import SASL_LIMIT
from pyjmsack.providers.amqp.wire import decode_value
from pyjmsack.providers.amqp.wire_types import Described

__all__ = ["SaslClient"]

_HEADER = b"AMQP\x03\x01\x00\x00"
_MAX_FRAME = 65536
_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = 0x40, 0x41, 0x42, 0x43, 0x44
_MOST_NAMES = 100
"""The largest number of mechanisms that are read from the offer of a broker. Further ones are ignored."""
_SHOWN = 20
"""An error shows at most this many names of mechanisms, and of each at most this many characters, which is the length
of the longest legal name (RFC 4422 3.1)."""
_CODES: dict[object, int] = {
    **{code: code for code in range(_MECHANISMS, _OUTCOME + 1)},
    "amqp:sasl-mechanisms:list": _MECHANISMS,
    "amqp:sasl-challenge:list": _CHALLENGE,
    "amqp:sasl-outcome:list": _OUTCOME,
}
"""The code of each SASL frame. The key is the descriptor of the frame, a number or a symbol, because the peer may use
either (1.5)."""
_OUTCOMES = {1: "authentication failed", 2: "system error", 3: "permanent system error", 4: "temporary system error"}


class SaslClient:
    """One login. The caller passes the bytes of the peer to :meth:`receive`, and sends the bytes in :attr:`output`.

    The login has succeeded when :attr:`done` is True.

    Args:
        username, password: the credentials. The password is never shown.
        external: whether the stream has a client certificate. If so, the mechanism EXTERNAL is tried first.
        allowed: the names of the mechanisms that the user allows. Empty means all mechanisms that this client knows.
        hostname: the name of the virtual host. Empty means no virtual host.
        elsewhere: ``elsewhere(work, then)`` runs ``work``, which takes long, on a thread. Then it runs ``then`` on the
            loop. ``None`` means that such work is done at once.
    """

    def __init__(
        self,
        username: str | None,
        password: str | None,
        *,
        external: bool,
        allowed: Sequence[str],
        hostname: str = "",
        elsewhere: Callable[[Callable[[], None], Callable[[], None]], None] | None = None,
    ) -> None:
        self._username = username
        self._password = password
        self._external = external
        self._allowed = {name.upper() for name in allowed}
        self._hostname = hostname
        self._buffer = bytearray()
        self.output = bytearray(_HEADER)
        self.done = False
        self._header_seen = False
        self._mechanism: Mechanism | None = None
        self._elsewhere = elsewhere
        self._computing = False
        """Whether a thread computes a response."""
        self._response: bytes | JMSException | None = None
        """The response that a thread computed, or its error."""
        self.go_on: Callable[[], None] = lambda: None
        """Called when a thread has computed a response. It has to call :meth:`receive`, perhaps with no bytes."""

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the peer. Return the bytes after the outcome of the login, because they belong to AMQP itself.

        Raises:
            JMSSecurityException: the broker refused the login, or no mechanism fits.
            ConnectionLostException: the peer does not speak SASL, or sends a frame that does not come at this time.
        """
        self._buffer += data
        if not self._header_seen:
            if len(self._buffer) < len(_HEADER) and _HEADER.startswith(bytes(self._buffer[:8])):
                return b""
            self._check_header()
        while not self.done:
            if self._computing:
                self._check_waiting()
                return b""
            self._send_computed()
            frame = self._next_frame()
            if frame is None:
                return b""
            self._on_frame(frame)
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _check_header(self) -> None:
        header = bytes(self._buffer[:8])
        if header != _HEADER:
            raise ConnectionLostException(
                f"the peer is not an AMQP 1.0 broker with SASL: the peer answered {header!r}, expected {_HEADER!r}"
            )
        del self._buffer[:8]
        self._header_seen = True

    def _next_frame(self) -> bytes | None:
        if len(self._buffer) < 8:
            return None
        size, offset, kind, _ = struct.unpack_from(">IBBH", self._buffer)
        if kind != 1 or offset < 2 or not 8 <= size <= _MAX_FRAME or offset * 4 > size:
            raise ConnectionLostException(f"malformed SASL frame: size {size}, data offset {offset}, type {kind}")
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[offset * 4 : size])
        del self._buffer[:size]
        return body

    def _on_frame(self, body: bytes) -> None:
        try:
            value, _ = decode_value(body, 0)
        except JMSException as error:
            raise ConnectionLostException("malformed SASL frame") from error
        if not isinstance(value, Described) or not isinstance(value.value, list):
            raise ConnectionLostException("malformed SASL frame: expected a described list")
        code = _CODES.get(value.descriptor) if isinstance(value.descriptor, int | str) else None
        fields = value.value
        if code == _MECHANISMS and self._mechanism is None:
            self._choose(_names(fields[0] if fields else None))
        elif code == _CHALLENGE and self._mechanism is not None:
            self._respond(self._mechanism, _binary(fields[0] if fields else None))
        elif code == _OUTCOME and self._mechanism is not None:
            self._on_outcome(self._mechanism, fields)
        else:
            # the broker refused no login, so ``failover:`` tries again
            raise ConnectionLostException(f"unexpected SASL frame {str(value.descriptor)[:40]} from the broker")

    def _respond(self, mechanism: Mechanism, challenge: bytes) -> None:
        if self._elsewhere is None or not mechanism.slow:
            self._write(_RESPONSE, [_encode_binary(mechanism.respond(challenge))])
            return
        self._computing = True
        self._elsewhere(partial(self._compute, mechanism, challenge), self._computed)

    def _compute(self, mechanism: Mechanism, challenge: bytes) -> None:
        """Compute a response. Runs on a thread."""
        try:
            self._response = mechanism.respond(challenge)
        except JMSException as error:
            self._response = error
        except Exception as error:  # without its traceback, because the frames hold the password
            self._response = JMSSecurityException(f"{mechanism.name}: no response: {type(error).__name__}")

    def _computed(self) -> None:
        self._computing = False
        self.go_on()

    def _send_computed(self) -> None:
        response, self._response = self._response, None
        if isinstance(response, JMSException):
            raise response
        if response is not None:
            self._write(_RESPONSE, [_encode_binary(response)])

    def _check_waiting(self) -> None:
        """Refuse bytes that a broker sends although it has to wait for a response."""
        if len(self._buffer) > _MAX_FRAME:
            raise ConnectionLostException("the peer sent bytes before the response to its SASL challenge")

    def _choose(self, offered: Sequence[str]) -> None:
        ours = list(mechanisms(self._username, self._password, external=self._external))
        usable = (name for name in ours if name in offered and (not self._allowed or name in self._allowed))
        name = next(usable, None)
        if name is None:
            raise JMSSecurityException(self._nothing_in_common(offered, ours))
        self._mechanism = create(name, self._username, self._password)
        first = self._mechanism.start()
        fields = [b"\xa3" + bytes([len(name)]) + name.encode(), b"\x40" if first is None else _encode_binary(first)]
        if self._hostname:
            hostname = self._hostname.encode()
            fields.append(b"\xb1" + struct.pack(">I", len(hostname)) + hostname)
        self._write(_INIT, fields)

    def _write(self, code: int, fields: Sequence[bytes]) -> None:
        frame = _frame(code, fields)
        if len(frame) > SASL_LIMIT:
            raise JMSSecurityException(
                f"the login needs a SASL frame of {len(frame):,} bytes; expected at most {SASL_LIMIT:,}; use a shorter"
                " user name, password or token"
            )
        self.output += frame

    def _nothing_in_common(self, offered: Sequence[str], ours: Sequence[str]) -> str:
        shown = ", ".join(name[:_SHOWN].encode("unicode_escape").decode() for name in offered[:_SHOWN])
        return (
            f"no SASL mechanism (way to log in) in common: the broker offers {shown or 'none'};"
            f" this client could use {', '.join(ours)}"
            + (f", limited to {', '.join(sorted(self._allowed))}" if self._allowed else "")
            + ("" if self._username else "; no user name was given")
        )

    def _on_outcome(self, mechanism: Mechanism, fields: Sequence[object]) -> None:
        code = fields[0] if fields else None
        if code != 0:
            reason = _OUTCOMES.get(code, f"code {code}") if isinstance(code, int) else "no code"
            code = code if isinstance(code, int) else None
            user = f"user {self._username!r}" if self._username is not None else "anonymous login"
            raise JMSSecurityException(
                f"the broker refused the login of {user} with {mechanism.name}: {reason}", error_code=f"sasl:{code}"
            )
        mechanism.succeed(_binary(fields[1] if len(fields) > 1 else None))
        self.done = True


def _names(value: object) -> list[str]:
    if value is None:
        return []
    return [str(v) for v in value[:_MOST_NAMES]] if isinstance(value, list | tuple) else [str(value)]


def _binary(value: object) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ConnectionLostException("malformed SASL frame: expected binary data")


def _encode_binary(data: bytes) -> bytes:
    return b"\xb0" + struct.pack(">I", len(data)) + data


def _frame(code: int, encoded: Sequence[bytes]) -> bytes:
    """Return a SASL frame, whose body is a described list of fields (5.3.3)."""
    fields = b"".join(encoded)
    body = b"\x00\x53" + bytes([code]) + b"\xd0" + struct.pack(">II", len(fields) + 4, len(encoded)) + fields
    return struct.pack(">IBBH", len(body) + 8, 2, 1, 0) + body
