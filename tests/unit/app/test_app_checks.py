"""``app.check``: a function of the service takes part in the health of its app."""

from __future__ import annotations

import json
import logging
import os
import urllib.error
import urllib.request
from typing import Any

import pytest

from pyjmsack import App, aio
from pyjmsack.cli.health import serving_health

NOWHERE = "amqp://127.0.0.1:1"


@pytest.mark.parametrize("kind", [App, aio.App])
def test_a_check_that_raises_or_returns_false_is_down(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    app, errors = kind(NOWHERE), [OSError("no route to db, password s3cret")]

    @app.check("database")
    def database() -> None:
        if errors:
            raise errors[0]

    app.check("disk")(lambda: False)
    with caplog.at_level(logging.WARNING, "pyjmsack.app"):
        for _ in range(3):
            assert app.health()["checks"] == {
                "database": {"status": "DOWN", "error": "OSError"},
                "disk": {"status": "DOWN", "error": "False"},
            }
    assert [record.getMessage() for record in caplog.records] == [
        "check 'database' failed: no route to db, password s3cret",
        "check 'disk' failed: the function returned False",
    ], "once each, and not with each probe"
    errors.clear()
    assert app.health()["checks"]["database"] == {"status": "UP"}
    assert database() is None, "the function itself stays as it is"


def test_an_app_is_up_only_if_its_checks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    app, fine = App(NOWHERE), [True]
    app.check("disk")(lambda: fine[0])
    monkeypatch.setattr(app, "_started_in", os.getpid())
    monkeypatch.setattr(type(app.sender.link), "state", "connected")
    assert app.health()["status"] == "UP"
    fine[0] = False
    assert app.health()["status"] == "DOWN"


def test_a_probe_whether_the_process_lives_runs_no_check() -> None:
    """A slow check would let Kubernetes kill a process that works."""
    app = App(NOWHERE)
    calls: list[int] = []
    app.check("disk")(lambda: calls.append(1))
    with serving_health(app.health, "127.0.0.1", 0) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live") as answer:
            assert json.load(answer) == {"status": "UP"}
        assert calls == []
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready")
        assert (refused.value.code, json.load(refused.value)["checks"]) == (503, {"disk": {"status": "UP"}})
        refused.value.close()
    assert calls == [1]


async def _coroutine() -> None: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [(lambda message: None, "check 'x': expected a function without arguments"), (_coroutine, "plain function")],
)
def test_a_check_that_cannot_be_called_is_refused(function: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        aio.App(NOWHERE).check("x")(function)


def test_names_of_checks_are_unique() -> None:
    app = App(NOWHERE)
    app.check("x")(lambda: True)
    with pytest.raises(ValueError, match="give the new check another name"):
        app.check("x")(lambda: True)
