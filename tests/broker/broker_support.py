"""A Maven repository without a network, and helpers that wait for events."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import types
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

FAKE_VERSION = "9.9.9"
FAKE_NAME = f"apache-artemis-{FAKE_VERSION}-bin.tar.gz"

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def fake_archive(content: bytes = b"jar") -> bytes:
    """Bytes of a small archive laid out as the real one."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in ("lib/a.jar", "lib/b.jar", "LICENSE", "web/console.war"):
            member = tarfile.TarInfo(f"apache-artemis-{FAKE_VERSION}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


@dataclass
class FakeMaven:
    """Stands in for ``jgo.maven``: what it serves, and how often it was asked."""

    payload: bytes | Exception = field(default_factory=fake_archive)
    downloads: int = 0

    @property
    def sha512(self) -> str:
        assert isinstance(self.payload, bytes)
        return hashlib.sha512(self.payload).hexdigest()

    def module(self) -> types.ModuleType:
        """Return a module with the two names that are used of the real one."""
        maven = self

        class PythonResolver:
            def __init__(self, progress_callback: Progress) -> None:
                self.progress = progress_callback

        class MavenContext:
            def __init__(self, repo_cache: Path, resolver: PythonResolver) -> None:
                self.cache, self.resolver = repo_cache, resolver

            def project(self, *_: str) -> MavenContext:
                return self

            def at_version(self, _: str) -> MavenContext:
                return self

            def artifact(self, *_: str) -> MavenContext:
                return self

            def resolve(self) -> Path:
                maven.downloads += 1
                if isinstance(maven.payload, Exception):
                    raise maven.payload
                target = self.cache / FAKE_NAME
                with self.resolver.progress(FAKE_NAME, len(maven.payload)) as advance:
                    target.write_bytes(maven.payload)
                    advance(len(maven.payload))
                return target

        module = types.ModuleType("jgo.maven")
        module.__dict__.update(MavenContext=MavenContext, PythonResolver=PythonResolver)
        return module


def process_ended(pid: int) -> bool:
    """Whether the process has ended: gone, or a zombie that a lazy init has not collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"
