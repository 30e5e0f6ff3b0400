"""`--emit app`: the code is Python that registers each listener with its settings, whatever the sources say."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from migrate_support import of_text

from pyjmsack import App, JsonConverter
from pyjmsack.migrate import Findings, Settings, as_app, migrate

SOURCES = """\
import org.springframework.jms.annotation.JmsListener;
class Service {
    public record Line(String sku, int quantity) {}
    public record Order(String id, List<Line> lines, Carrier carrier, @JsonProperty("at") Instant placedAt,
            Map<String, List<String>> notes, BigDecimal total, byte[] picture) {}
    enum Carrier { POST, COURIER(2); private int days; }
    @Bean
    DefaultJmsListenerContainerFactory feed() {
        var factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(new ActiveMQConnectionFactory("tcp://b:61616"));
        factory.setPubSubDomain(true);
        factory.setSubscriptionDurable(true);
        factory.setClientId("desk");
        factory.setAutoStartup(false);
        return factory;
    }
    @Bean MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        converter.setTypeIdMappings(Map.of("order", Order.class, "receipt", Receipt.class));
        return converter;
    }
    @SendTo("receipts")
    @JmsListener(id = "orders", destination = "shop.orders", concurrency = "3-10", selector = "region = 'EU'")
    public Receipt onOrder(@Payload Order order, @Header(name = "jms_type", required = false) String type,
            @Headers Map<String, Object> headers, Session session) {}
    @JmsListener(destination = "prices", containerFactory = "feed", subscription = "desk")
    public Message<Receipt> onPrice(final Map<String, Object> price, @Header int class1) {}
}
"""


def found(folder: Path, sources: str = SOURCES) -> Findings:
    """What is found in the sources and a configuration."""
    (folder / "Service.java").write_text(sources)
    url = "tcp://a:61616?clientID=of-the-url"
    (folder / "application.properties").write_text(f"spring.artemis.broker-url={url}\nspring.artemis.password=s3cret\n")
    return migrate([str(folder)], Settings(), [])


def made(code: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of the code, which is run."""
    monkeypatch.setenv("PYJMSACK_USER", "shop")
    monkeypatch.setenv("PYJMSACK_PASSWORD", "from outside")
    monkeypatch.setenv("PYJMSACK_URL", "amqp://from-outside")
    monkeypatch.setenv("PYJMSACK_CLIENT_ID", "from-outside")
    module = ModuleType("made")
    monkeypatch.setitem(sys.modules, "made", module)  # dataclasses look there for the names of their types
    exec(compile(code, "made.py", "exec"), module.__dict__)
    return module.__dict__


def test_each_listener_is_registered_with_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = made(as_app(found(tmp_path)), monkeypatch)
    orders, prices = names["app"].listeners["orders"], names["feed_app"].listeners["prices"]
    assert isinstance(names["app"], App)
    assert (orders.low, orders.high, orders.settings.selector) == (3, 10, "region = 'EU'")
    assert (orders.settings.mode, orders.settings.reply_to, orders.settings.autostart) == (
        "transacted",
        "receipts",
        True,
    )
    assert prices.destination.is_topic
    assert (prices.settings.subscription, prices.settings.client_id) == ("desk", "desk")
    assert (prices.settings.mode, prices.settings.autostart) == ("individual", False)
    assert [source[0] for source in orders.arguments.sources] == ["order", "type", "message", "session"]
    with pytest.raises(NotImplementedError):
        prices.call({"a": 1}, properties={"class1": 5})


def test_records_and_enumerations_become_classes_that_the_converter_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = made(as_app(found(tmp_path)), monkeypatch)
    assert isinstance(names["converter"], JsonConverter)
    assert names["converter"].types == {"order": names["Order"], "receipt": names["Receipt"]}
    assert [one.name for one in names["Carrier"]] == ["POST", "COURIER"]
    assert names["Order"].__annotations__ == {
        "id": "str",
        "lines": "list[Line]",
        "carrier": "Carrier",
        "at": "datetime",
        "notes": "dict[str, Any]",
        "total": "Decimal",
        "picture": "str",
    }
    assert "write its fields here" in str(names["Receipt"].__doc__), "no source has this class"


def test_the_client_id_of_a_url_goes_to_its_listener_and_no_secret_is_written(tmp_path: Path) -> None:
    """An App has several connections, so that its URL may have none."""
    sources = '@JmsListener(destination = "t", subscription = "s") void f(String body) {}'
    code = as_app(found(tmp_path, sources))
    assert "client_id='of-the-url'" in code
    assert "jms.clientID" not in code
    assert "s3cret" not in code


def test_listeners_without_a_connection_take_its_url_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = as_app(of_text(tmp_path, "L.java", '@JmsListener(destination = "q") void f(TextMessage m) {}'))
    assert 'App(\n    os.environ["PYJMSACK_URL"],\n)' in code
    assert list(made(code, monkeypatch)["app"].listeners) == ["q"]


HOSTILE = [
    '@JmsListener(id = "\\"\\"\\" + x()", destination = "q\\n\\"") void f(@Header("\'] + x() #") String lambda) {}',
    '@JmsListener(destination = "q") void class(__import__ a, String import, String b, Object... c) {}',
    '@JmsListener(destination = "q") void app(App app, Header h, Decimal d) {} record App(String x) {}',
    '@JmsListener(destination = "q") void f(A a) {} record A(A a, List<A> b, String class, int... more) {}',
    '@JmsListener(destination = "q") void f(A a) {} enum A { class, B("x"), None }',
    '@JmsListener(destination = "q") void f(@Header(name = "n", defaultValue = "\\"); x(") int n) {}',
    '@JmsListener(destination = "q") void f(A a) {} class A extends A { @JsonProperty("x = x()\\n") int y; }',
    '@JmsListener(destination = "q") void f(A a) {} class A { String class = "; x()"; { x(); } int[] é, b; Object }',
    '@Scheduled(fixedRate = 1000) void import() {} @Scheduled(fixedRate = "x()") void g() {} @Scheduled(',
]


@pytest.mark.parametrize("sources", HOSTILE)
def test_nothing_in_a_source_becomes_code_of_its_own(tmp_path: Path, sources: str) -> None:
    tree = ast.parse(as_app(found(tmp_path, f"// jms\n{sources}")))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called <= {"App", "Header", "JsonConverter", "NotImplementedError", "Retry"}
