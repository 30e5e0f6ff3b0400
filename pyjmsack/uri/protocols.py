"""The ``amqp.*`` options and the ``stomp.*`` options."""

from __future__ import annotations

from dataclasses import dataclass

from pyjmsack.uri.option import (
    BOOLEAN,
    BYTES_OR_UNLIMITED,
    MILLIS_AT_LEAST_1,
    MILLIS_OR_FOREVER,
    NAME,
    TEXT,
    choice,
    integer,
    names,
    option,
)

__all__ = [
    "AmqpOptions",
    "StompOptions",
]

_SASL = ("EXTERNAL", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "CRAM-MD5", "PLAIN", "XOAUTH2", "ANONYMOUS")


@dataclass(frozen=True, slots=True)
class AmqpOptions:
    """The ``amqp.*`` options. Durations are in seconds."""

    idle_timeout: float | None = option(
        "amqp.idleTimeout",
        MILLIS_OR_FOREVER,
        "60000",
        "the connection fails if no frame arrives for this time; 0 or -1 switches this off",
    )
    vhost: str | None = option(
        "amqp.vhost",
        TEXT,
        None,
        "host name in the SASL and Open frames; if not set, the host of the URL; if empty, no name is sent",
    )
    sasl_mechanisms: tuple[str, ...] = option(
        "amqp.saslMechanisms", names(*_SASL), "", "the allowed mechanisms, comma-separated; empty allows all"
    )
    max_frame_size: int = option(
        "amqp.maxFrameSize", integer(512, 2**32 - 1, "bytes"), "1048576", "largest frame that is accepted"
    )
    drain_timeout: float | None = option(
        "amqp.drainTimeout", MILLIS_OR_FOREVER, "60000", "limit for a drain; 0 or -1 means no limit"
    )
    trace_frames: bool = option("amqp.traceFrames", BOOLEAN, "false", "log every frame, without passwords")
    trace_frames_payload_limit: int = option(
        "amqp.traceFramesPayloadLimit",
        integer(0, 2**31 - 1, "bytes"),
        "1024",
        "how much of a frame's payload amqp.traceFrames logs",
    )
    sasl_layer: bool = option(
        "amqp.saslLayer",
        BOOLEAN,
        "true",
        "false connects without SASL, which Artemis allows for clients without a login",
    )
    allow_non_secure_redirects: bool = option(
        "amqp.allowNonSecureRedirects",
        BOOLEAN,
        "false",
        "in failover URLs: accept a broker without TLS from the list that a broker with TLS sends",
    )
    dead_letter_queue: str | None = option(
        "amqp.deadLetterQueue",
        NAME,
        None,
        "name of the dead-letter queue; on ActiveMQ Classic reject() copies a non-persistent message to this queue,"
        " but leaves a message that comes from this queue where it is; the default is DLQ on Artemis, and ActiveMQ.DLQ"
        " on ActiveMQ Classic",
        "S118",
    )
    engine: str = option(
        "amqp.engine",
        choice({name: name for name in ("proton", "python")}),
        "python",
        "the implementation of AMQP 1.0: `python` is a part of pyjmsack, `proton` is python-qpid-proton (the extra"
        " `proton`)",
        "pyjmsack",
    )
    spool_over: int | None = option(
        "amqp.spoolOver",
        BYTES_OR_UNLIMITED,
        "4194304",
        "a bytes message of more bytes is received into a temporary file instead of memory; -1 or 0: never",
        "S168",
    )
    spool_directory: str | None = option(
        "amqp.spoolDirectory",
        TEXT,
        None,
        "directory of the temporary files; if not set, the directory of Python's tempfile, which TMPDIR names",
        "S168",
    )
    channel_max: int = option(
        "amqp.channelMax",
        integer(0, 65535),
        "32767",
        "highest channel number, which is the largest number of sessions minus 1",
    )
    single_credit: str = option(
        "amqp.singleCredit",
        choice({"afterLoss": "afterLoss", "always": "always", "never": "never"}),
        "afterLoss",
        "when a link at Artemis has credit for one message only: for 1.8 s after this process lost a connection (or"
        " longer if the broker is slow), always, or never; Artemis may mix up messages when a client loses its"
        " connection",
        "pyjmsack",
    )


@dataclass(frozen=True, slots=True)
class StompOptions:
    """The ``stomp.*`` options. Durations are in seconds."""

    # heart-beats cannot be switched off, because Artemis drops a client that is silent for a minute
    heart_beat: float = option(
        "stomp.heartBeat",
        MILLIS_AT_LEAST_1,
        "10000",
        "interval of the heart-beats in both directions, shorter if the broker wants them more often; never off,"
        " because Artemis drops silent clients",
        "pyjmsack",
    )
    vhost: str | None = option(
        "stomp.vhost",
        TEXT,
        None,
        "host header of CONNECT; if not set, the host of the URL; if empty, no host is sent",
        "pyjmsack",
    )
    version: str = option(
        "stomp.version",
        choice({"1.2": "1.2", "1.1": "1.1"}),
        "1.2",
        "highest protocol version that the client offers",
        "pyjmsack",
    )
    max_frame_size: int = option(
        "stomp.maxFrameSize",
        integer(1024, 2**31 - 1, "bytes"),
        "104857600",
        "largest body of a message; a larger message is refused when it arrives (S166), and is never sent",
        "pyjmsack",
    )
    max_headers: int = option(
        "stomp.maxHeaders",
        integer(64, 65536),
        "1000",
        "most header lines of a message; a message with more lines is refused when it arrives (S166), and is never"
        " sent",
        "pyjmsack",
    )
    max_header_length: int = option(
        "stomp.maxHeaderLength",
        integer(256, 2**31 - 1, "bytes"),
        "65536",
        "longest header line; a message with a longer line is refused when it arrives (S166), and is never sent",
        "pyjmsack",
    )
    drain_timeout: float | None = option(
        "stomp.drainTimeout",
        MILLIS_OR_FOREVER,
        "60000",
        "how long a consumer waits for the answer of the broker whether messages are left, and how long a browser"
        " waits for a message; 0 or -1: no limit",
        "pyjmsack",
    )
    dead_letter_queue: str | None = option(
        "stomp.deadLetterQueue",
        NAME,
        None,
        "name of the dead-letter queue; reject() copies a message to this queue, but leaves a message that comes from"
        " this queue where it is; the default is DLQ on Artemis, and ActiveMQ.DLQ on ActiveMQ Classic",
        "S118",
    )
    trace_frames: bool = option("stomp.traceFrames", BOOLEAN, "false", "log every frame, without passwords", "pyjmsack")
