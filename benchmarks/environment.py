"""The broker and the machine that everything runs on."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from benchmarks.job import BenchmarkError

if TYPE_CHECKING:
    from pyjmsack.broker import EmbeddedArtemis

# C2 and a roomy heap, against the frugal defaults of the embedded broker: it must not be the bottleneck.
_BROKER_OPTIONS = ("-XX:TieredStopAtLevel=4",)
_HEAP = "1g"


@dataclass(frozen=True)
class Addresses:
    """The addresses of the broker: for the tools around a measurement, and for the measured clients."""

    tools: str
    clients: str
    stomp: str


@contextmanager
def broker(url: str | None, protocol: str = "amqp", stomp_url: str | None = None) -> Iterator[Addresses]:
    """Yield the addresses of the broker: the given ones, or those of an embedded broker that ends with the block."""
    if url is not None:
        if protocol == "stomp" and stomp_url is None:
            raise BenchmarkError("--protocol stomp with --url needs the broker's other address too: --stomp-url")
        yield Addresses(url, stomp_url if protocol == "stomp" and stomp_url else url, stomp_url or "")
        return
    with embedded() as artemis:
        clients = artemis.stomp_url if protocol == "stomp" else artemis.amqp_url
        yield Addresses(artemis.amqp_url, clients, artemis.stomp_url)


@contextmanager
def embedded(heap: str = _HEAP) -> Iterator[EmbeddedArtemis]:
    """Yield a broker that is not the bottleneck."""
    try:
        from pyjmsack.broker import EmbeddedArtemis
    except ImportError as error:
        raise BenchmarkError(f"there is no embedded broker ({error}); give the address of one with --url") from error
    with EmbeddedArtemis(jvm_options=(*_BROKER_OPTIONS, f"-Xmx{heap}")) as artemis:
        yield artemis


def require_library() -> None:
    """Raise with a clear message when our side cannot be measured."""
    for face in ("sync", "aio"):
        try:
            importlib.import_module(f"benchmarks.peers.{face}")
        except ImportError as error:
            raise BenchmarkError(
                f"pyjmsack cannot be imported ({error}): install the project in this environment, "
                "or measure the peers alone with --only raw"
            ) from error


def machine(java: str | None) -> dict[str, Any]:
    """Describe the machine and the versions, because the numbers depend on them."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "load": os.getloadavg()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "proton": version("python-qpid-proton"),
        "java": java,
    }
