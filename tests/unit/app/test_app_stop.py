"""A stop of an app after an earlier call that failed."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pyjmsack import App

NOWHERE = "amqp://127.0.0.1:1"


class NoThreadError(Exception):
    """Stands for the error of Python when the system has no thread left."""


@pytest.mark.parametrize("error", [NoThreadError, KeyboardInterrupt])
@pytest.mark.parametrize("started", [False, True])
def test_a_stop_that_could_not_begin_does_not_keep_the_next_one_from_it(
    error: type[BaseException], started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses a thread, or Ctrl-C comes before or behind its start."""
    app = App(NOWHERE)
    app.start()
    spawn, spawned = app._face.spawn, list[Any]()

    def once(*how: Any) -> Any:
        monkeypatch.undo()
        if started:
            spawned.append(spawn(*how))
        raise error

    monkeypatch.setattr(type(app._face), "spawn", lambda _, *how: once(*how))
    with pytest.raises(error):
        app.stop()
    again = threading.Thread(target=app.stop, daemon=True)
    again.start()
    again.join(30)
    assert not again.is_alive()
    assert not app._running


def test_a_thread_that_comes_too_late_to_stop_an_app_leaves_the_next_run_alone() -> None:
    app = App(NOWHERE)
    app.start()
    late = app._end(app._may_stop)
    app.stop()
    app.start()
    app._face.run(late)
    assert app._running
    app.stop()
    assert not app._running
