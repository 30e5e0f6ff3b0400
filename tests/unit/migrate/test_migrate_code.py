"""What was found as code: it is Python, it holds no secret, and nothing in a file can put code into it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from migrate_support import of_text, of_url
from test_migrate_files import ACTIVEMQ_JNDI, SPRING

from pyjmsack.migrate import Findings, Settings, Verdict, as_app, as_environment, as_python, as_toml, migrate, open_text
from pyjmsack.migrate.model import Function, Place, Send


def test_the_code_makes_its_factories_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYJMSACK_PASSWORD", "from outside")
    code = as_python(of_text(tmp_path, "context.xml", SPRING))
    names: dict[str, object] = {"__name__": "made"}
    exec(compile(code, "made.py", "exec"), names)
    assert {"real", "on_receiver", "on_prices", "serve", "main"} <= names.keys()
    assert "from outside" not in repr(names["real"])


def test_a_listener_is_served_by_as_many_consumers_as_before(tmp_path: Path) -> None:
    code = as_python(of_text(tmp_path, "context.xml", SPRING))
    lines = [line.strip() for line in code.splitlines()]
    first = lines.index("serve(real, on_receiver, Queue('shop.orders'), AckMode.SESSION_TRANSACTED)")
    assert lines[first - 1] == "for _ in range(2):"


def service(folder: Path, url: str, listeners: str, extra: str = "") -> Findings:
    """What is found for a service of Spring Boot."""
    (folder / "application.properties").write_text(f"spring.artemis.broker-url={url}\n{extra}")
    (folder / "Listeners.java").write_text(listeners)
    return migrate([str(folder)], Settings(), [])


def test_a_listener_without_prefetch_may_fetch_by_itself(tmp_path: Path) -> None:
    """S9: else the generated code ends with an error when it starts. Spring's container fetches by itself."""
    found = service(tmp_path, "tcp://a:61616?consumerWindowSize=0", '@JmsListener(destination = "orders")')
    assert "Queue('orders?consumer.allowPullListener=true')" in as_python(found)
    found = service(tmp_path, "tcp://a:61616", '@JmsListener(destination = "orders")')
    assert "Queue('orders')" in as_python(found)


def test_a_default_that_stands_for_a_variable_is_said(tmp_path: Path) -> None:
    """Where the Java service runs, the variable may have another value, and the code would log in as somebody else."""
    extra = "spring.artemis.user=${ARTEMIS_USER:guest}\nspring.artemis.password=${ARTEMIS_PASSWORD:s3cret}\n"
    found = service(tmp_path, "tcp://a:61616", "", extra)
    (row,) = [row for row in found.rows if row.key == "spring.artemis.user (default)"]
    assert row.why.endswith("-D ARTEMIS_USER=VALUE writes another value")
    assert "s3cret" not in repr(found.rows)
    given = migrate([str(tmp_path)], Settings(variables={"ARTEMIS_USER": "shop"}), [])
    assert given.factories[0].username == "shop"
    assert not any(row.key.endswith(" (default)") for row in given.rows)


def test_a_durable_subscription_gets_the_client_id_of_the_java_service(tmp_path: Path) -> None:
    """S141: Spring Boot has the client id in the code of a bean, and a subscription of another client id is empty."""
    listeners = '@JmsListener(destination = "prices", subscription = "desk")\n@JmsListener(destination = "orders")'
    found = service(tmp_path, "tcp://a:61616", listeners)
    code = as_python(found)
    assert 'durable=True, client_id=os.environ["PYJMSACK_CLIENT_ID"])' in code
    assert "import os" in code
    row = next(row for row in found.rows if row.key == "(client id)")
    assert (row.verdict, row.place.line, row.python) == (Verdict.BY_HAND, 1, "env:PYJMSACK_CLIENT_ID")
    found = service(tmp_path, "tcp://a:61616", listeners, "spring.jms.client-id=shop\n")
    assert "client_id" not in as_python(found).partition("def main")[2]
    assert "(client id)" not in [row.key for row in found.rows]


def test_all_listeners_with_one_client_id_share_a_connection(tmp_path: Path) -> None:
    """A broker refuses a second connection with the client id."""
    listeners = '@JmsListener(destination = "prices", subscription = "desk")\n@JmsListener(destination = "orders")'
    names: dict[str, Any] = {"__name__": "made"}
    exec(compile(as_python(service(tmp_path, "tcp://a:61616", listeners)), "made.py", "exec"), names)

    class Made:
        client_id = None

        def create_connection(self) -> object:
            return Made()

    factory, connected = Made(), names["connected"]
    assert connected(factory, "shop") is connected(factory, "shop")
    assert connected(factory, "shop").client_id == "shop"
    assert connected(factory) is connected(factory)
    assert connected(factory) is not connected(factory, "shop")


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
    ours = {"ConnectionFactory", "connected", "serve", "range", "Queue", "Topic", "handle", "main"}
    assert called <= ours | {f"on_{one}" for one in called}
    assert "__import__" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_an_option_with_quotes_stays_inside_its_text() -> None:
    code = as_python(of_url("tcp://h:61616?jms.clientID=a'%22%0A;import os"))
    ast.parse(code)
    environment = as_environment(of_url("tcp://h:61616?jms.clientID=a'%3B rm"))
    assert environment.splitlines()[0].startswith("PYJMSACK_URL='amqp://h:5672?")


BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029")
"""What ends a line for a shell, for Python, or for a reader of lines."""


def hostile_user(folder: Path, user: str) -> Findings:
    """What is found for a file of JNDI with this user name."""
    escaped = "".join(f"\\u{ord(each):04x}" for each in user)
    head = ACTIVEMQ_JNDI.partition("java.naming.security.principal")[0]
    return of_text(folder, "jndi.properties", f"{head}\njava.naming.security.principal = {escaped}\n")


@pytest.mark.parametrize("end", BREAKS)
def test_no_line_break_of_a_user_name_ends_the_comment_in_the_shell(tmp_path: Path, end: str) -> None:
    lines = as_environment(hostile_user(tmp_path, f"bob{end}touch x; $(touch y)")).splitlines()
    assert f"# --user 'bob{'?' * len(end)}touch x; $(touch y)'" in lines
    assert not [line for line in lines if not line.startswith(("PYJMSACK_", "# --user "))]


def test_the_user_name_of_a_domain_is_a_word_of_the_shell(tmp_path: Path) -> None:
    assert "# --user 'SHOP\\bob'\n" in as_environment(hostile_user(tmp_path, "SHOP\\bob"))


@pytest.mark.parametrize("end", BREAKS)
def test_no_line_break_of_a_file_ends_a_comment_of_the_code(tmp_path: Path, end: str) -> None:
    found = of_text(tmp_path, "context.xml", SPRING)
    text = f"x{end}import evil # ''' \"\"\""
    place = Place(text, 3)
    found.add(place, text, text, Verdict.BY_HAND, text, text)
    found.functions.append(
        Function("f", place, 9, sends=[Send(place, text, "send", (repr("q" * 99), f"...{end}import evil"))])
    )
    for each in (*found.factories, *found.listeners):
        each.place = place
    for code in (as_python(found), as_app(found)):
        modules = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Import)]
        assert "evil" not in {one.names[0].name for one in modules}
    assert [open_text(row).splitlines() for row in found.rows] == [[open_text(row)] for row in found.rows]


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", " "])
def test_a_host_with_a_line_break_is_no_host(end: str) -> None:
    """Some readers of variables, such as `docker run --env-file`, would take the second line as another variable."""
    found = of_url(f"tcp://h{end}LD_PRELOAD=x:61616")
    assert not found.factories
    assert "no line breaks" in found.unreadable[0]


BEAN = (
    '<beans xmlns="http://www.springframework.org/schema/beans" xmlns:p="http://www.springframework.org/schema/p">'
    '<bean id="cf" class="org.apache.activemq.ActiveMQConnectionFactory">{}</bean>'
    '<bean class="org.springframework.jms.core.JmsTemplate">'
    '<property name="priority" value="1 password=s3cret"/></bean>'
    "</beans>"
)
BROKER = '<broker xmlns="http://activemq.apache.org/schema/core">{}</broker>'


@pytest.mark.parametrize(
    "text",
    [
        BEAN.format('<property name="properties"><value>brokerURL=tcp://h:1\npassword=s3cret</value></property>'),
        BEAN.format('<property name="properties" value="a=b&#10;password: s3cret"/>'),
        BEAN.format('<property name="clientID" value="a password=s3cret"/>'),
        BEAN.format('<property name="brokerURL" value="tcp://h:1?jms.clientID=a&#10;password=s3cret"/>'),
        BEAN.format('<property name="userName"><value>bob\npassword = s3cret</value></property>'),
        BEAN.format('<property name="x"><props><prop key="password">s3cret</prop></props></property>'),
        BEAN.format('<property name="x"><map><entry key="password" value="s3cret"/></map></property>'),
        BEAN.format('<property name="clientID" value="${x:a password=s3cret}"/>'),
        BEAN.format('<property name="clientID" value="#{a + password = s3cret}"/>'),
        BROKER.format('<bean><property value="s3cret" name="password"/></bean>'),
        BROKER.format('<props><prop key="password">s3cret</prop></props>'),
        BROKER.format("<value>user=bob\npassword=s3cret</value>"),
    ],
)
def test_a_secret_among_other_settings_is_in_no_output(tmp_path: Path, text: str) -> None:
    found = of_text(tmp_path, "context.xml", text)
    assert found.rows
    for output in (repr(found), as_python(found), as_app(found), as_toml(found), as_environment(found)):
        assert "s3cret" not in output


def test_the_attributes_beside_a_secret_are_shown(tmp_path: Path) -> None:
    text = BROKER.format('<authenticationUser username="u" password="s3cret" groups="g"/>')
    row = of_text(tmp_path, "activemq.xml", text).rows[-2]
    assert row.value == "username=u password=*** groups=g"
