"""`--emit app` of what a Spring engineer's service had: nothing of it is lost without a row that says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrate_support import of_text, row
from test_migrate_app import made

from pyjmsack import TextMessage
from pyjmsack.migrate import Findings, Verdict, as_app

DEFAULTS = """\
class L {
    @JmsListener(destination = "q") void f(String body,
        @Header(name = "fast", defaultValue = "false") boolean fast,
        @Header(name = "again", defaultValue = "Yes") Boolean again,
        @Header(name = "attempt", defaultValue = "-1") int attempt,
        @Header(name = "rate", defaultValue = "1.50") double rate,
        @Header(name = "region", defaultValue = "1") String region,
        @Header(name = "count", defaultValue = "many") int count,
        @Header(name = "level", defaultValue = "LOW") Level level,
        @Header(name = "late", defaultValue = Config.LATE) boolean late) {}
    enum Level { LOW, HIGH }
}
"""


def test_a_default_of_a_header_has_the_type_of_its_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text "false" was the default of a bool, and true."""
    found = of_text(tmp_path, "L.java", DEFAULTS)
    names = made(as_app(found), monkeypatch)
    sources = names["app"].listeners["q"].arguments.sources
    defaults = {name: header.default for name, _, _, header in sources if header is not None}
    assert {name: defaults[name] for name in ("fast", "again", "attempt", "rate", "region")} == {
        "fast": False, "again": True, "attempt": -1, "rate": 1.5, "region": "1",
    }  # fmt: skip
    assert defaults["fast"] is False
    assert "class default" not in as_app(found), "a word of the annotation is no class"
    rows = {one.python.partition(":")[0]: one for one in found.rows if one.key == "@Header"}
    assert [name for name, one in rows.items() if one.verdict is Verdict.BY_HAND] == ["count", "level", "late"]
    assert "many is not a literal of the type int" in rows["count"].why
    assert all("default=" not in rows[name].python for name in ("count", "level", "late"))


SHARED = """\
class L {
    @Bean DefaultJmsListenerContainerFactory shared() {
        var factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(new ActiveMQConnectionFactory("tcp://a:61616"));
        factory.setPubSubDomain(true);
        factory.setSubscriptionShared(true);
        factory.setSubscriptionDurable(true);
        CLIENT
        return factory;
    }
    @JmsListener(destination = "t", containerFactory = "shared", subscription = "NAME", selector = "a > 3")
    void f(String body) {}
    @JmsListener(destination = "q", subscription = "unread") void g(String body) {}
}
"""


def of_shared(folder: Path, client: str, name: str, package: str = "artemis.jms.client.") -> Findings:
    """What is found in a listener with a shared durable subscription."""
    text = f"import org.apache.activemq.{package}ActiveMQConnectionFactory;\n{SHARED}"
    return of_text(folder, "L.java", text.replace("CLIENT", client).replace("NAME", name))


@pytest.mark.parametrize(
    ("client", "name", "ours", "java"),
    [
        ("", "audit", "audit:global", "audit"),
        ('factory.setClientId("desk.eu");', "audit.all", "desk.eu.audit.all", r"desk\.eu.audit\.all"),
        ("", "audit.all", "audit.all:global", r"audit\.all"),
    ],
)
def test_a_subscription_whose_queue_has_another_name_here_is_said(
    tmp_path: Path, client: str, name: str, ours: str, java: str
) -> None:
    """Nobody gets an error: there are two queues, and what waits for the Java service is never received."""
    found = of_shared(tmp_path, client, name)
    told = row(found, "(queue of the subscription)")
    assert (told.verdict, told.value) == (Verdict.BY_HAND, name)
    assert f"is {ours} over AMQP, and {java} for the Java client of Artemis" in told.why
    assert "A subscription that Java and Python share" in told.why
    assert (Path(__file__).parents[3] / "docs/howto/from-spring.md").read_text().count(
        "## A subscription that Java and Python share"
    ) == 1
    comments = " ".join(line[2:] for line in as_app(found).splitlines() if line.startswith("# "))
    assert f"the queue of this subscription is {ours} over AMQP, and {java} for" in comments


@pytest.mark.parametrize("client", ["artemis.jms.client.", ""])
def test_a_subscription_with_the_same_queue_is_not_said(tmp_path: Path, client: str) -> None:
    """Names without a dot and with a client id are the same. The client of Classic makes no such queue."""
    found = of_shared(tmp_path, 'factory.setClientId("desk");', "audit", client)
    assert "(queue of the subscription)" not in [one.key for one in found.rows]
    assert "the queue of this subscription" not in as_app(found)


def test_the_subscription_and_the_selector_of_a_listener_have_rows(tmp_path: Path) -> None:
    found = of_shared(tmp_path, "", "audit")
    assert row(found, "@JmsListener.selector").value == "a > 3"
    first, second = (one for one in found.rows if one.key == "@JmsListener.subscription")
    assert (first.verdict, first.python) == (Verdict.SAME, "app.listener(..., topic=True, subscription='audit')")
    assert second.value == "unread"


BODIES = """\
package shop;
class L {
    @Bean MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        converter.setTypeIdMappings(Map.of("order", Order.class));
        return converter;
    }
    static class Order {
        @JsonProperty("from") private String sender;
        private Level level = Level.HIGH;
        private State state = State.unknown();
        private List<String> notes = new ArrayList<>();
        private Map<String, Integer> counts = new HashMap<String, Integer>();
        private String region = "E'U";
        private long cents = -5L;
        private double rate = 1.50;
        private Boolean paid = true;
        private BigDecimal total = BigDecimal.ZERO;
        private String nothing = null;
        @JsonProperty("ship-to") private String shipTo;
        private Duration took;
    }
    enum Level { @JsonProperty("lo") LOW, HIGH }
    enum State { NEW("n"); @JsonValue public String text() { return "n"; } }
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public static final class Named { private String first; }
    public record Label(String no) {}
    public record Parcel(String no) {}
    public record Box(String no) {}
    record Unused(Duration took) {}
    @JmsListener(destination = "q") public Message<Box> f(Order order) {
        Parcel parcel = find();
        jmsTemplate.convertAndSend(Destinations.LABELS, new L.Label("7"), m -> { return m; });
        jmsTemplate.convertAndSend("parcels", parcel);
    }
    @JmsListener(destination = "named") public void g(Named named) {}
}
"""


def test_a_field_whose_name_is_a_word_of_python_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left out, and its value was lost without a word."""
    found = of_text(tmp_path, "L.java", BODIES)
    names = made(as_app(found), monkeypatch)
    order = names["converter"].from_message(TextMessage('{"from": "Rosa"}'), names["Order"])
    assert order.from_ == "Rosa"
    assert '"from": "Rosa"' in names["converter"].to_message(order).text
    told = row(found, "Order.from")
    assert (told.verdict, told.python) == (Verdict.CHANGED, "from_, and JsonConverter(..., camel_case=True)")


def test_a_word_of_python_beside_a_name_with_underscores_is_left_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """camel_case=True would look for the other field under another name."""
    source = '@JmsListener(destination = "q") void f(A a) {} record A(@JsonProperty("box_no") int no, String from) {}'
    found = of_text(tmp_path, "L.java", source)
    names = made(as_app(found), monkeypatch)
    assert "JsonConverter" not in as_app(found)
    assert [*names["A"].__annotations__] == ["box_no"]
    told = row(found, "A.from")
    assert (told.verdict, told.python) == (Verdict.BY_HAND, 'Field(alias="from")')
    assert "its value is lost" in told.why


def test_classes_that_are_only_sent_have_a_dataclass_and_a_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spring writes the full name of a class that the mapping does not have."""
    names = made(as_app(of_text(tmp_path, "L.java", BODIES)), monkeypatch)
    types = names["converter"].types
    assert {text: kind.__name__ for text, kind in types.items()} == {
        "order": "Order",
        "shop.L$Label": "Label",
        "shop.L$Parcel": "Parcel",
        "shop.L$Box": "Box",
        "shop.L$Named": "Named",
    }
    assert names["converter"].to_message(names["Label"]("7")).properties["_type"] == "shop.L$Label"
    assert "Unused" not in names


def test_the_first_values_of_fields_are_those_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_text(tmp_path, "L.java", BODIES)
    names = made(as_app(found), monkeypatch)
    order = names["Order"]()
    assert (order.level, order.notes, order.counts, order.region) == (names["Level"].HIGH, [], {}, "E'U")
    assert (order.cents, order.rate, order.paid) == (-5, 1.5, True)
    assert (order.state, order.total, order.nothing) == (None, None, None)
    for key in ("Order.state", "Order.total"):
        assert (row(found, key).verdict, "default" in row(found, key).why) == (Verdict.BY_HAND, True)
    assert "Order.nothing" not in [one.key for one in found.rows]


def test_what_jackson_writes_otherwise_has_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_text(tmp_path, "L.java", BODIES)
    names = made(as_app(found), monkeypatch)
    assert [one.value for one in names["Level"]] == ["lo", "HIGH"]
    assert "@JsonValue" in row(found, "State").why
    assert "@JsonNaming" in row(found, "Named").why
    assert row(found, "Named").value.startswith("JsonNaming")
    assert "cannot be a name in Python" in row(found, "Order.ship-to").why
    assert "Duration" not in names, "an empty class would refuse each value"
    assert names["Order"].__annotations__["took"] == "Any"
    assert row(found, "Order.took").verdict is Verdict.BY_HAND
    assert not [one for one in found.rows if one.key.startswith("Unused")]
