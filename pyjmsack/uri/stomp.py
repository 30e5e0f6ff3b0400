"""The ``stomp.*`` options."""

from __future__ import annotations

from dataclasses import dataclass

from pyjmsack.uri.kinds import (
    BOOLEAN,
    MILLIS_AT_LEAST_1,
    MILLIS_OR_FOREVER,
    NAME,
    TEXT,
    choice,
    integer,
    option,
)

__all__ = ["StompOptions"]


@dataclass(frozen=True, slots=True)
class StompOptions:
    """The ``stomp.*`` options."""

    # no "off": Artemis drops a client that is silent for a minute
    heart_beat: float = option(
        "stomp.heartBeat",
        MILLIS_AT_LEAST_1,
        "10000",
        "interval of the heart-beats offered and asked for, both ways; never off, as Artemis drops silent clients",
        "pyjmsack",
    )
    vhost: str | None = option(
        "stomp.vhost", TEXT, None, "host header of CONNECT; the URL's host when unset, omitted when empty", "pyjmsack"
    )
    version: str = option(
        "stomp.version", choice({"1.2": "1.2", "1.1": "1.1"}), "1.2", "highest protocol version offered", "pyjmsack"
    )
    max_frame_size: int = option(
        "stomp.maxFrameSize",
        integer(1024, 2**31 - 1, "bytes"),
        "104857600",
        "largest body of a message accepted: a larger one is refused (S166), and none is sent",
        "pyjmsack",
    )
    max_headers: int = option(
        "stomp.maxHeaders",
        integer(64, 65536),
        "1000",
        "most header lines of a message accepted: one with more is refused (S166), and none is sent",
        "pyjmsack",
    )
    max_header_length: int = option(
        "stomp.maxHeaderLength",
        integer(256, 2**31 - 1, "bytes"),
        "65536",
        "longest header line of a message accepted: one with a longer one is refused (S166), and none is sent",
        "pyjmsack",
    )
    drain_timeout: float | None = option(
        "stomp.drainTimeout",
        MILLIS_OR_FOREVER,
        "60000",
        "limit of the question whether there are more messages, and of a browser that hears nothing; 0 or -1 has none",
        "pyjmsack",
    )
    dead_letter_queue: str | None = option(
        "stomp.deadLetterQueue",
        NAME,
        None,
        "where reject() copies a message; when unset DLQ on Artemis, ActiveMQ.DLQ on ActiveMQ Classic",
        "S118",
    )
    trace_frames: bool = option("stomp.traceFrames", BOOLEAN, "false", "log every frame, passwords masked", "pyjmsack")
