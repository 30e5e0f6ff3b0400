"""`--emit app` of a whole small service: the code has its classes, retries, error handlers, schedules and logins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from migrate_support import of_text, row
from test_migrate_app import made

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from pyjmsack import Retry, TextMessage
from pyjmsack.migrate import Findings, Settings, Verdict, as_app, as_environment, as_python, as_toml, migrate
from pyjmsack.migrate.emit import _quoted

LISTENERS = """\
package shop.service;
import org.springframework.jms.annotation.JmsListener;
import shop.model.Order;
import shop.model.Messages;
import shop.model.Receipt;
class Listeners {
    static final long MINUTE = 60 * 1000;
    static class Ping { private int number; public int getNumber() { return number; } }

    @JmsListener(destination = "orders", containerFactory = "work")
    public Receipt onOrder(Order order) { return null; }
    @JmsListener(destination = "refunds", containerFactory = "work")
    public void onRefund(Messages.Refund refund) {}
    @JmsListener(destination = "pings")
    public void onPing(@Payload Ping ping, @Header("JMSTimestamp") long at) {}

    @Scheduled(fixedRate = MINUTE, initialDelay = 500)
    public void reportStock() { jmsTemplate.convertAndSend("stock", 42); }
    @Scheduled(fixedDelayString = "${sweep.every:PT1.5S}")
    void sweep() {}
    @Scheduled(fixedRate = 2, timeUnit = TimeUnit.HOURS)
    void tidyUp() {}
    @Scheduled(cron = "0 0 7 * * MON")
    void monday() {}
    @Scheduled(fixedRate = Settings.every())
    void unknown() {}
    @Scheduled(fixedRate = 1)
    void tooOften() {}
}
"""
CONFIG = """\
package shop.service;
import jakarta.jms.ConnectionFactory;
class Config {
    @Bean
    DefaultJmsListenerContainerFactory work(DefaultJmsListenerContainerFactoryConfigurer configurer,
            ConnectionFactory connectionFactory) {
        var factory = new DefaultJmsListenerContainerFactory();
        configurer.configure(factory, connectionFactory);
        factory.setErrorHandler(error -> log.warn("failed", error));
        return factory;
    }
    @Bean MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        return converter;
    }
}
"""
ORDER = """\
package shop.model;
@Data
public class Order extends Base<String> implements Serializable {
    private static final long serialVersionUID = 1L;
    private transient Logger log;
    @JsonProperty("no") private long number;
    private String note = "a; b { c";
    private List<Line> lines = new ArrayList<>() {{ add(null); }};
    @JsonIgnore private String secretOfOurs;
    protected Optional<BigDecimal> discount;
    private byte[] picture;
    private boolean express;
    private State state;
    private final Map<String, Line> byName = Map.of();

    public Order() { this.number = 1; }
    @JsonIgnore public boolean isLarge() { int x = 3; return lines.size() > x; }

    public static class Line { private String sku; private double weight; }
    enum State { @JsonProperty("NEW") NEW, SENT }
}
"""
BASE = """\
package shop.model;
public abstract class Base<K extends Comparable<K>> {
    protected K key;
    protected Instant changedAt;
}
"""
MESSAGES = "package shop.model;\npublic interface Messages {\n    record Refund(String orderId, int cents) {}\n}\n"
UNRELATED = "package shop.model;\nclass Order2 { String never; }\n"


def service(folder: Path, properties: str = "spring.artemis.user=shop\nspring.artemis.password=s3cret\n") -> Findings:
    """What is found in the sources of the service."""
    model = folder / "model"
    model.mkdir()
    for name, text in {
        "Listeners": LISTENERS,
        "Config": CONFIG,
        "model/Order": ORDER,
        "model/Base": BASE,
        "model/Messages": MESSAGES,
        "model/Order2": UNRELATED,
    }.items():
        (folder / f"{name}.java").write_text(text)
    (folder / "application.properties").write_text(f"spring.artemis.broker-url=tcp://a:61616\n{properties}")
    return migrate([str(folder)], Settings(), [])


def test_the_classes_of_bodies_are_dataclasses_that_read_what_jackson_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = made(as_app(service(tmp_path)), monkeypatch)
    text = {
        "key": "k",
        "changedAt": "2026-11-24T13:00:00Z",
        "no": 7,
        "note": None,
        "lines": [{"sku": "bell", "weight": 0.5}],
        "discount": 0.10,
        "picture": "aGVsbG8=",
        "express": True,
        "state": "SENT",
        "byName": {"b": {"sku": "bell"}},
        "large": False,
    }
    order = names["converter"].from_message(TextMessage(json.dumps(text)), names["Order"])
    assert (order.key, order.no, order.note, order.lines) == ("k", 7, None, [names["Line"]("bell", 0.5)])
    assert (str(order.discount), order.picture, order.express) == ("0.1", "aGVsbG8=", True)
    assert order.state is names["State"].SENT
    assert names["Order"]() == names["Order"](None, None, 0), "as Java's fields begin"
    assert "Order2" not in names
    assert [*vars(order)] == [
        "key", "changedAt", "no", "note", "lines", "discount", "picture", "express", "state", "byName",
    ]  # fmt: skip


def test_classes_come_after_the_classes_of_their_fields(tmp_path: Path) -> None:
    """As in a program that a person writes, where a reader meets no unknown name."""
    code = as_app(service(tmp_path))
    places = [code.index(f"class {name}") for name in ("Line:", "State(", "Order:")]
    assert places == sorted(places)


def test_without_a_mapping_the_types_are_the_full_names_of_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = made(as_app(service(tmp_path)), monkeypatch)
    assert names["converter"].type_property == "_type"
    assert names["converter"].types == {
        "shop.model.Order": names["Order"],
        "shop.model.Receipt": names["Receipt"],
        "shop.model.Messages$Refund": names["Refund"],
        "shop.service.Listeners$Ping": names["Ping"],
    }
    assert names["app"].listeners["refunds"].arguments.sources[0][0] == "refund"


def test_a_schedule_runs_a_function_every_so_many_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = service(tmp_path)
    names = made(as_app(found), monkeypatch)
    times = {name: (each.seconds, each.delay) for name, each in names["app"].schedules.items()}
    assert times == {"report_stock": (60, 0.5), "sweep": (1.5, 0), "tidy_up": (7200, 0)}
    with pytest.raises(NotImplementedError):
        names["app"].schedules["sweep"].call()
    calendar = row(found, "@Scheduled")
    assert (calendar.verdict, calendar.value) == (Verdict.BY_HAND, 'cron = "0 0 7 * * MON"')
    rates = [one for one in found.rows if one.key == "@Scheduled.fixedRate"]
    assert [(one.verdict, one.python) for one in rates] == [
        (Verdict.CHANGED, "app.every(60, delay=0.5)"),
        (Verdict.CHANGED, "app.every(7200)"),
        (Verdict.BY_HAND, "app.every(seconds)"),
        (Verdict.BY_HAND, "app.every(seconds)"),
    ]
    assert "neither a literal nor a constant of these sources" in rates[2].why
    assert "0.01 seconds to 31 days" in rates[3].why
    assert row(found, "@Scheduled.fixedDelayString").python == "app.every(1.5)"


def test_an_error_handler_is_a_function_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = made(as_app(service(tmp_path)), monkeypatch)
    listeners = names["app"].listeners
    assert listeners["orders"].settings.on_error is listeners["refunds"].settings.on_error is names["on_error_of_work"]
    assert listeners["pings"].settings.on_error is None
    names["on_error_of_work"](ValueError("no stock"), TextMessage("x"))
    assert "no stock" in caplog.text


def retry_of(folder: Path, monkeypatch: pytest.MonkeyPatch, properties: str) -> Any:
    """Return the retry of the only listener."""
    (folder / "L.java").write_text('@JmsListener(destination = "q") void f(String body) {}')
    (folder / "application.properties").write_text(properties)
    names = made(as_app(migrate([str(folder)], Settings(), [])), monkeypatch)
    return names["app"].listeners["q"].retry


@pytest.mark.parametrize(
    ("properties", "retry"),
    [
        ("spring.artemis.broker-url=tcp://a:61616", Retry(delay=0)),
        ("amqphub.amqp10jms.remote-url=amqp://a:5672", Retry(delay=0)),
        ("spring.activemq.broker-url=tcp://a:61616", Retry(6, delay=1, backoff=1)),
        ("spring.activemq.broker-url=tcp://a:61616?jms.redeliveryPolicy.maximumRedeliveries=3", None),
        ("spring.artemis.broker-url=tcp://a:61616\nspring.jms.listener.session.transacted=false", None),
    ],
)
def test_a_message_comes_again_as_soon_as_in_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: str, retry: Retry | None
) -> None:
    """An App waits 1 to 30 s where nothing says otherwise. Spring with Artemis does not."""
    assert retry_of(tmp_path, monkeypatch, properties) == retry


def test_the_user_is_written_and_the_password_is_not(tmp_path: Path) -> None:
    code = as_app(service(tmp_path))
    assert "username='shop'" in code
    assert 'password=os.environ["PYJMSACK_PASSWORD"]' in code
    assert "s3cret" not in code


def test_a_user_that_no_file_names_comes_from_the_environment(tmp_path: Path) -> None:
    """The code connected without a user, and the broker refused it."""
    found = service(tmp_path, "spring.artemis.user=${MQ_USER}\nspring.artemis.password=${MQ_PASSWORD}\n")
    for code in (as_app(found), as_python(found)):
        assert 'username=os.environ["PYJMSACK_USER"]' in code
    assert 'username = "env:PYJMSACK_USER"' in as_toml(found)
    assert "PYJMSACK_USER=\nPYJMSACK_PASSWORD=\n" in as_environment(found)
    assert row(found, "(user)").python == "env:PYJMSACK_USER"


@pytest.mark.parametrize(
    ("text", "read"),
    [("\ud83d\ude00", "\U0001f600"), ("\ud800", "\ufffd"), ('a\x7f\x00\t"b\\', None), ("é\u2028", None)],
)
def test_toml_takes_a_text_of_any_characters(text: str, read: str | None) -> None:
    """Beyond U+FFFF it had escapes that TOML forbids."""
    assert tomllib.loads(f"a = {_quoted(text)}") == {"a": read or text}


def test_a_schedule_without_a_listener_has_an_app_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import javax.jms.Message;\nclass T { @Scheduled(fixedRate = 5000) public void tick() {} }"
    names = made(as_app(of_text(tmp_path, "T.java", source)), monkeypatch)
    assert [*names["app"].schedules] == ["tick"]
