"""The broker's operating system process, which never outlives the Python process that started it.

Guarantees, on Linux and macOS:

* If Python ends normally, or the owner of the broker is garbage collected, ``weakref.finalize`` calls
  ``Workspace.close``, which stops the broker.
* If Python is killed (SIGKILL, out of memory, ``os._exit``), a watchdog kills the broker and removes the temporary
  directory. The watchdog is a shell that reads from a pipe. Only Python has the write end of the pipe, which the kernel
  closes when Python ends. ``PR_SET_PDEATHSIG`` is not used, because it acts when the *thread* that started the broker
  ends.
* A child made by ``os.fork()`` also has the write end of the pipe, until it starts another program. The broker then
  runs until Python and the child have ended, and the end of the child alone does not stop the broker.
* The broker goes on running only if both Python and the watchdog get a SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyjmsack.broker.errors import BrokerError

__all__ = ["BrokerProcess"]

# $1: the broker's process group; $2: the directory to remove, or nothing. SIGKILL, because a paused broker reacts to no
# other signal. `kill -s NAME --` is the only spelling for a process group that every shell takes; dash refuses `kill
# -KILL --`. A line on the input says that the broker has ended and its process number is free. The watchdog must then
# kill nothing, because another process may soon have this number.
_WATCHDOG = """
if read -r ended; then
    read -r ignored
else
    kill -s KILL -- "-$1" 2>/dev/null
    tries=0
    while kill -s 0 -- "-$1" 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
fi
[ -z "$2" ] || rm -rf -- "$2"
"""


class BrokerProcess:
    """The process of a broker, at most one at a time. If Python is killed, a watchdog kills the broker and
    removes ``temporary``."""

    def __init__(self, temporary: Path | None = None) -> None:
        self._temporary = temporary
        self._child: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._end_told = False

    @property
    def pid(self) -> int | None:
        """The process id of the broker. ``None`` if no broker runs."""
        return self._child.pid if self._child is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the process is alive. A paused process is alive."""
        return self._child is not None and self._poll(self._child) is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last broker. A negative number is the signal that ended the broker. ``None`` means that
        the broker still runs.
        """
        return self._poll(self._child) if self._child is not None else None

    def _poll(self, child: subprocess.Popen[bytes]) -> int | None:
        """Return the exit code, or ``None`` if the process runs. If the process has ended, tell the watchdog, because
        another process may soon have the same number.
        """
        code = child.poll()
        if code is not None and not self._end_told and self._watchdog is not None and self._watchdog.stdin is not None:
            self._end_told = True
            with contextlib.suppress(OSError):
                os.write(self._watchdog.stdin.fileno(), b"ended\n")
        return code

    def launch(self, command: Sequence[str], directory: Path, log: Path) -> None:
        """Start ``command`` in a session of its own, so that only Python gets a Ctrl-C at the terminal.

        Raises:
            BrokerError: the operating system cannot start the command.
        """
        self.kill()
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._child = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._watchdog = self._watch(self._child.pid)
            self._end_told = False
        except OSError as error:
            self.kill()
            raise BrokerError(f"The broker's process cannot be started: {error}") from error
        finally:
            os.close(descriptor)

    def _watch(self, group: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - a constant script
            ["/bin/sh", "-c", _WATCHDOG, "pyjmsack-broker-watchdog", str(group), str(self._temporary or "")],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process of the broker.

        Raises:
            BrokerError: the broker does not run.
        """
        if self._child is None or not self.running:
            raise BrokerError("the broker is not running; call start()")
        self._child.send_signal(number)

    def wait_stopped(self) -> None:
        """Wait until a SIGSTOP has taken effect, because the kernel stops a process a moment after the signal."""
        if sys.platform == "linux" and self._child is not None:
            with contextlib.suppress(ChildProcessError):
                # WNOWAIT leaves the event for Popen; WEXITED ends the wait if the broker ends before it stops
                os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def terminate(self, timeout: float) -> None:
        """Ask the broker to end (SIGTERM), and kill it after ``timeout`` seconds."""
        if self._child is not None and self.running:
            self._child.terminate()
            self._child.send_signal(signal.SIGCONT)  # a paused broker does not react to SIGTERM
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Kill the broker with SIGKILL if it runs. Return when the broker and its watchdog have ended."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.kill()
            watchdog.wait()
            if watchdog.stdin is not None:
                watchdog.stdin.close()
