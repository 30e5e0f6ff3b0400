"""Files that somebody made to keep `pyjmsack migrate` busy: the time grows with the length of a file, and ends.

No test here looks at a clock. A test needs two or three seconds and may take 60. A reader whose time grows with the
square of the length needs more than 60 seconds, so its test fails.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from migrate_support import of_text, row

from pyjmsack.cli.main import cli
from pyjmsack.migrate import Factory, Findings, Listener, Settings, Unreadable, Verdict, as_app, as_python, migrate
from pyjmsack.migrate import options as of_java
from pyjmsack.migrate.emit import Names
from pyjmsack.migrate.java_parameters import parameters_in
from pyjmsack.migrate.java_tokens import Token, Tokens, tokens_of
from pyjmsack.migrate.java_url import parse_java_url
from pyjmsack.migrate.model import Place
from pyjmsack.migrate.properties_file import read_properties
from pyjmsack.migrate.spring_xml import BEANS
from pyjmsack.migrate.values import Missing, milliseconds, resolve, shown
from pyjmsack.migrate.xml_file import read_xml
from pyjmsack.migrate.yaml_file import read_yaml

pytestmark = pytest.mark.timeout(60)

long = pytest.mark.full_tier("each case needs seconds of a core")
ALIKE = "the other rows have words and spaces, too, and the time is that of one reader of tokens"
MANY = 1_000_000
LINES = 2_000_000
"""A million is too few: the quadratic readers of lines took only 37 and 53 seconds for it (2026-11-27)."""


@long
@pytest.mark.parametrize(
    "part",
    ["a = ", "(", "a\n", *(pytest.param(part, marks=pytest.mark.whole_tier(ALIKE)) for part in ("a", "a ", "\\"))],
)
def test_an_annotation_of_any_length_is_read(tmp_path: Path, part: str) -> None:
    findings = of_text(tmp_path, "A.java", f"@JmsListener(\n{part * (MANY // len(part))}\n) // jms\n")
    assert row(findings, "@JmsListener").verdict is Verdict.BY_HAND


def test_an_annotation_over_lines_is_still_read(tmp_path: Path) -> None:
    text = '@JmsListener(\n  destination = "a" + "(b",\n  id = f(")"), concurrency = "2-3")\nvoid jms() {}\n'
    findings = of_text(tmp_path, "A.java", text)
    assert [(one.destination, one.concurrency) for one in findings.listeners] == [("a(b", "2-3")]


@long
@pytest.mark.parametrize(
    "text",
    [
        "record A(" * 50_000 + ") {} " * 50_000,
        "class A { " * 50_000 + "int x; }" * 50_000,
        "class A " * 100_000,
        "class A { " + "@X " * 100_000 + "int x; }",
        "class A<" + "B," * 90 + "B> { " + "".join(f"B x{number}; " for number in range(50_000)) + "}",
        "enum A { " + "B, " * 100_000 + "}",
    ],
    ids=["records", "classes", "heads", "annotations", "fields", "names"],
)
def test_the_class_of_a_body_may_have_any_length(tmp_path: Path, text: str) -> None:
    findings = of_text(tmp_path, "A.java", f'@JmsListener(destination = "q") void jms(A a) {{}}\n{text}')
    assert "class A" in as_app(findings)


@long
class _Counted(list[Token]):
    """Tokens that count how often one of them is read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return super().__getitem__(index)


def test_the_work_on_a_deeply_nested_type_grows_with_its_length() -> None:
    """It grew with the square, because each comma began the type again: 10,000 levels took 20 seconds."""

    def reads(levels: int) -> int:
        read = tokens_of(f"({'Map<String,' * levels}X{'>' * levels} map, List<Order> orders)")
        tokens = Tokens(counted := _Counted(read.all), read.closing)
        assert [read.all[part[-1]].text for part in parameters_in(tokens, read.inside(0))] == ["map", "orders"]
        return counted.reads

    assert reads(2000) < 2.1 * reads(1000)


def test_a_file_may_have_any_number_of_templates(tmp_path: Path) -> None:
    """The whole file was read once more for each template: 160 seconds."""
    names = [f"t{number}" for number in range(6_000)]
    fields = "".join(f"JmsTemplate {name};\n" for name in names)
    sends = "".join(f'{name}.convertAndSend("q", "x");\n' for name in names)
    findings = of_text(tmp_path, "A.java", f"class A {{ {fields} void f() {{ {sends} }} }}")
    assert sum(row.key.endswith(".convertAndSend") for row in findings.rows) == len(names)


@long
def test_any_number_of_classes_may_be_unknown(tmp_path: Path) -> None:
    """All listeners were written out once more for each class: 87 seconds."""
    listeners = "".join(f'@JmsListener(destination = "q") void m{n}(B{n} b) {{}}\n' for n in range(16_000))
    findings = of_text(tmp_path, "A.java", f"class A {{ {listeners} }}")
    unknown = [row for row in findings.rows if row.verdict is Verdict.BY_HAND and "fields of this class" in row.why]
    assert [(row.key, row.place.line) for row in unknown] == [(f"B{n}", 1 + n) for n in range(16_000)]


def _factories_with_one_policy(factories: int, options: int) -> str:
    policy = "".join(f"<property name='unknown{n}' value='1'/>" for n in range(options))
    beans = "".join(
        f"<bean id='c{n}' class='org.apache.activemq.ActiveMQConnectionFactory'>"
        "<property name='redeliveryPolicy' ref='p'/></bean>"
        for n in range(factories)
    )
    return f"<beans xmlns='{BEANS}'><bean id='p' class='x.RedeliveryPolicy'>{policy}</bean>{beans}</beans>"


def test_the_nearest_name_of_an_unknown_option_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked for once in each factory with the policy: 9 KB needed 8 seconds."""
    of_java._nearest.cache_clear()
    asked: list[str] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, *_, **__: asked.append(name) or [])
    findings = of_text(tmp_path, "a.xml", _factories_with_one_policy(factories=9, options=7))
    of_java._nearest.cache_clear()
    assert sum("no version of the ActiveMQ Classic client" in one.why for one in findings.rows) == 9 * 7
    assert sorted(asked) == [f"jms.redeliveryPolicy.unknown{n}" for n in range(7)]


def test_all_files_together_have_a_limited_number_of_settings(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(_factories_with_one_policy(factories=400, options=400), encoding="utf-8")
    with pytest.raises(Unreadable, match="more than 100000 settings together"):
        migrate([str(tmp_path)], Settings())
    shown = CliRunner().invoke(cli, ["migrate", str(tmp_path)])
    assert shown.exit_code == 2
    assert "give fewer files" in shown.output


def test_a_long_value_in_many_places_is_not_repeated(tmp_path: Path) -> None:
    """A folder of 143 KB became 86 MB of code."""
    (tmp_path / "a.properties").write_text(f"b={'x' * 60_000}\n", encoding="utf-8")
    listeners = "".join(f'@JmsListener(destination = "${{b}}{n}") void f{n}(String s) {{}}\n' for n in range(100))
    (tmp_path / "A.java").write_text(f"class A {{ {listeners} }}", encoding="utf-8")
    findings = migrate([str(tmp_path)], Settings())
    rows = [one for one in findings.rows if one.key == "@JmsListener"]
    assert [one.verdict for one in rows] == [Verdict.BY_HAND] * 100
    assert "more than 8192 characters" in rows[0].why
    assert len(as_app(findings)) < 100_000


@pytest.mark.parametrize(("length", "verdict"), [(1000, Verdict.SAME), (1001, Verdict.BY_HAND)])
def test_the_name_of_a_destination_has_a_largest_length(tmp_path: Path, length: int, verdict: Verdict) -> None:
    text = f'class A {{ @JmsListener(destination = "{"q" * length}") void f(String s) {{}} }}'
    findings = of_text(tmp_path, "A.java", text)
    assert row(findings, "@JmsListener").verdict is verdict


def test_a_long_value_of_an_option_is_left_to_the_user(tmp_path: Path) -> None:
    url = f"tcp://h:61616?jms.clientID={'x' * 9000};password=s3cret"
    findings = of_text(tmp_path, "a.properties", f"spring.activemq.broker-url={url}\n")
    left = next(one for one in findings.rows if one.verdict is Verdict.BY_HAND)
    assert "more than 8192 characters" in left.why
    assert "s3cret" not in as_python(findings) + str(findings)


def test_all_listeners_together_have_a_limited_number_of_characters() -> None:
    found = Findings()
    long_one = Listener("l", Place("A.java"), "q", selector="x" * 8192)
    for _ in range(2 * 1024 - 1):
        found.listen(long_one)
    with pytest.raises(Unreadable, match="more than 16777216 characters"):
        found.listen(long_one)


@pytest.mark.parametrize("value", ["//user:" + "s3cret" * 20_000 + "@host", "tcp://" + "s3cret" * 20_000 + "@host"])
def test_a_login_longer_than_what_is_looked_at_is_not_shown(value: str) -> None:
    assert "s3cret" not in shown("url", value)


def test_a_property_may_go_over_any_number_of_lines() -> None:
    (entry,) = read_properties("key=" + "a\\\n" * LINES)
    assert entry.value == "a" * LINES


def test_text_in_xml_may_have_any_number_of_lines() -> None:
    assert read_xml(b"<a>" + b"x\n" * LINES + b"</a>").text == "x\n" * LINES
    root = read_xml(b"<a>x<b>y</b>z</a>")
    assert (root.text, root.children[0].text) == ("xz", "y")


@pytest.mark.parametrize("part", ["//", "?a", "//u:", "?password", "#class:"])
def test_a_value_of_any_length_is_shown_shortened(part: str) -> None:
    assert 1 <= len(shown("url", "//" + part * MANY)) <= 120


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("tcp://u:p@host", "tcp://***@host"),
        ("tcp://u:p@//q@host?x=1", "tcp://***@host?x=1"),
        ("tcp://a@b,tcp://c@d", "tcp://***@d"),
        ("tcp://host?a&b?password=s3cret&c=d", "tcp://host?a&b?password=***"),
        ("tcp://host?a=1;keyStorePassword=s3cret", "tcp://host?a=1;keyStorePassword=***"),
        ("tcp://host?password", "tcp://host?password"),
        ("org.example.Codec;key=s3cret", "org.example.Codec;key=***"),
        ("#class:org.example.Factory('u', 's3cret')", "#class:org.example.Factory(***)"),
        ("brokerURL=tcp://h:1\npassword=s3cret\nx=1", "brokerURL=tcp://h:1 password=***"),
        ("password : s3cret", "password :***"),
        ("password s3cret", "password ***"),
        ("password\\=s3cret", "password\\=***"),
        ("password=!?", "password=***"),
        ("{'a': 1, 'password': 's3cret'}", "{'a': 1, 'password'***"),
        ('<prop key="keyStorePassword">s3cret</prop>', "<prop key=***"),
        ("<password>s3cret</password>", "<password>***"),
        ('f.setPassword("s3cret")', "f.setPassword(***"),
        ("tcp://h/location/password=s3cret", "tcp://h/location/password=***"),
        ("settings.getPassword()", "settings.getPassword()"),
        ("/run/secrets/trust.p12", "/run/secrets/trust.p12"),
        ("token::orders", "token::orders"),
        ("token.orders?consumer.prefetchSize=1", "token.orders?consumer.prefetchSize=1"),
        ('Map.of("key", value)', 'Map.of("key", value)'),
    ],
)
def test_no_secret_of_a_url_is_shown(value: str, expected: str) -> None:
    assert shown("url", value) == expected


@pytest.mark.parametrize("text", ["9" * 400 + "ns", "P" + "9" * 400 + "D", "9" * 5000, " " * 50 + "x" * 50])
def test_a_duration_without_measure_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration"):
        milliseconds(text)


def test_the_brokers_of_a_url_are_limited() -> None:
    for url in (f"({','.join(['tcp://a'] * 1001)})", f"(tcp://a)#{','.join(['tcp://a'] * 1001)}"):
        with pytest.raises(Unreadable, match="at most 1000 brokers"):
            parse_java_url(url)


def test_the_documents_and_keys_of_a_yaml_file_are_limited() -> None:
    with pytest.raises(Unreadable, match="at most 1000 documents"):
        read_yaml("---\na: 1\n" * 1001)
    document = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    document += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 4))
    with pytest.raises(Unreadable, match="100000 keys"):
        read_yaml(document * 20)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.xml", '<?xml version="1.0" encoding="shift_jis"?><broker xmlns="http://activemq.apache.org/schema/core"/>'),
        ("a.xml", '<?xml version="1.0" encoding="undefined"?><broker xmlns="http://activemq.apache.org/schema/core"/>'),
        ("a.yml", 'spring:\n  activemq:\n    broker-url: "\\U00110000"'),
        ("a.yml", 'spring:\n  activemq:\n    broker-url: "\\UFFFFFFFF"'),
    ],
    ids=["multi-byte", "undefined", "no-character", "no-number"],
)
def test_a_file_that_a_parser_cannot_read_costs_itself_alone(name: str, text: str, tmp_path: Path) -> None:
    """The parser raised errors that are none of its own, so one file ended the migration of a folder."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "b.properties").write_text("spring.activemq.broker-url=tcp://b:61616", encoding="utf-8")
    findings = migrate([str(tmp_path)], Settings())
    assert findings.files == 1
    assert [one.partition(": ")[0] for one in findings.unreadable] == [f"{tmp_path}/{name}"]


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "application.properties")
    findings = migrate([str(tmp_path)], Settings())
    assert findings.unreadable == [
        f"{tmp_path}/application.properties: expected a regular file, not a pipe or a device"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${host}", "the given files have no value for host: give -D host=VALUE"),
        (
            "#{env.host}",
            "#{env.host} is an expression of Spring, which cannot be evaluated; replace the expression by its value",
        ),
        ("${loop}", "a placeholder must not contain itself; replace the placeholder by its value"),
        ("${" + "x" * MANY + "}", "the given files have no value for"),
    ],
)
def test_a_placeholder_without_a_value_says_what_to_do(text: str, said: str) -> None:
    with pytest.raises(Missing) as caught:
        resolve(text, {"loop": "${loop}"})
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("write", [as_python, as_app])
def test_any_number_of_listeners_may_have_one_destination(write: Callable[[Findings], str]) -> None:
    found = Findings(factories=[Factory("cf", Place("a.xml"), "activemq", "", "amqp://h:5672")])
    found.listeners = [Listener("q", Place("a.xml", line), "q") for line in range(20_000)]
    assert "def on_q_20000(message" in write(found)


def test_each_name_is_made_once() -> None:
    names = Names({"on_a_3"})
    wanted = ["on a", "on a", "on a", "on_a_2", "on_a", "on_a_2"]
    assert [names.new(text) for text in wanted] == ["on_a", "on_a_2", "on_a_4", "on_a_2_2", "on_a_5", "on_a_2_3"]
