"""The targets of the fuzzer: each makes an input from a dice and runs it. Any exception that it raises is a finding."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.fuzz.amqp import amqp_input, credit_input, run_amqp, run_proton
from benchmarks.fuzz.beats import beats_input, run_beats
from benchmarks.fuzz.bench import Input
from benchmarks.fuzz.logins import run_sasl, sasl_input
from benchmarks.fuzz.messages import body_input, run_body
from benchmarks.fuzz.stomp import run_stomp, stomp_input
from benchmarks.fuzz.texts import run_selector, run_url, selector_input, url_input
from benchmarks.fuzz.websocket import run_websocket, websocket_input

__all__ = ["ON_PROTON", "TARGETS", "Target", "proton_is_installed"]


class Target(NamedTuple):
    """``make`` returns an input, ``run`` raises if it does harm."""

    make: Callable[[random.Random], Input]
    run: Callable[[Input], None]
    about: str


TARGETS: Final[dict[str, Target]] = {
    "amqp": Target(amqp_input, run_amqp, "frames on an AMQP connection in use"),
    "credit": Target(credit_input, run_amqp, "transfers beyond all credit"),
    "amqp-proton": Target(amqp_input, run_proton, "frames on an AMQP connection in use, on proton"),
    "credit-proton": Target(credit_input, run_proton, "transfers beyond all credit, on proton"),
    "stomp": Target(stomp_input, run_stomp, "frames on a STOMP connection in use"),
    "body": Target(body_input, run_body, "sections and bodies of AMQP messages"),
    "sasl": Target(sasl_input, run_sasl, "logins"),
    "websocket": Target(websocket_input, run_websocket, "the upgrade and frames of WebSocket"),
    "selector": Target(selector_input, run_selector, "selectors"),
    "url": Target(url_input, run_url, "broker URLs"),
    "beats": Target(beats_input, run_beats, "heart-beats and idle time-outs"),
}
"""By name."""

ON_PROTON: Final = tuple(name for name, target in TARGETS.items() if target.run is run_proton)
"""The targets that need the extra ``proton``."""


def proton_is_installed() -> bool:
    """Return whether the targets of ``ON_PROTON`` can run here."""
    return importlib.util.find_spec("proton") is not None
