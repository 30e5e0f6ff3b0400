"""What was found as code: it is Python, it holds no secret, and nothing in a file can put code into it."""

from __future__ import annotations

import ast
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from migrate_support import of_text, of_url
from test_migrate_files import ACTIVEMQ_JNDI, SPRING

from pyjmsack.migrate import as_environment, as_python, as_toml


def test_the_code_makes_its_factories_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYJMSACK_PASSWORD", "from outside")
    code = as_python(of_text(tmp_path, "context.xml", SPRING))
    names: dict[str, object] = {"__name__": "made"}
    exec(compile(code, "made.py", "exec"), names)
    assert {"real", "on_receiver", "on_prices", "serve", "main"} <= names.keys()
    assert "from outside" not in repr(names["real"])


def test_a_listener_is_served_by_as_many_consumers_as_before(tmp_path: Path) -> None:
    code = as_python(of_text(tmp_path, "context.xml", SPRING))
    assert "serve(real, on_receiver, Queue('shop.orders'), AckMode.SESSION_TRANSACTED) for _ in range(2)" in code


@pytest.mark.parametrize("emit", [as_python, as_toml, as_environment])
def test_no_form_of_the_result_holds_a_secret(tmp_path: Path, emit: object) -> None:
    assert callable(emit)
    text = emit(of_text(tmp_path, "jndi.properties", ACTIVEMQ_JNDI))
    assert "s3cret" not in text
    assert "failover:(amqp://a:5672,amqp://b:5672)" in text


HOSTILE = '"""\n\\" + __import__("os").getcwd() + \'\'\' \n'


def test_a_hostile_name_stays_a_text_in_the_code(tmp_path: Path) -> None:
    text = SPRING.replace('id="receiver"', f"id={quoteattr(HOSTILE)}")
    text = text.replace('destination="prices"', f"destination={quoteattr(HOSTILE)}")
    (tmp_path / "sub").mkdir()
    code = as_python(of_text(tmp_path / "sub", "context.xml", text))
    tree = ast.parse(code)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called <= {"ConnectionFactory", "serve", "range", "Queue", "Topic", "handle", "main"} | {
        f"on_{one}" for one in called
    }
    assert "__import__" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_an_option_with_quotes_stays_inside_its_text() -> None:
    code = as_python(of_url("tcp://h:61616?jms.clientID=a'%22%0A;import os"))
    ast.parse(code)
    environment = as_environment(of_url("tcp://h:61616?jms.clientID=a'%3B rm"))
    assert environment.splitlines()[0].startswith("PYJMSACK_URL='amqp://h:5672?")
