"""Beans that Java code makes: literals become settings of the listeners that name them, and the rest stays by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrate_support import of_text, row

from pyjmsack import AckMode
from pyjmsack.migrate import Findings, Listener, Settings, Verdict, as_python, migrate
from pyjmsack.migrate.java_beans import beans_of
from pyjmsack.migrate.java_tokens import tokens_of
from pyjmsack.migrate.java_values import Known

CONFIG = """\
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
class Config {
    static final int RECOVERY = 5_000;
    @Value("${desk.id:desk}") String desk;
    @Bean @Primary
    public CachingConnectionFactory connectionFactory() {
        ActiveMQConnectionFactory target = new ActiveMQConnectionFactory("tcp://a:61616", "shop", "s3cret");
        target.setCallTimeout(10_000L);
        CachingConnectionFactory caching = new CachingConnectionFactory(target);
        caching.setSessionCacheSize(20);
        return caching;
    }
    @Bean("feed")
    DefaultJmsListenerContainerFactory feedFactory(ConnectionFactory connectionFactory) throws JMSException {
        DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(connectionFactory);
        factory.setPubSubDomain(true);
        factory.setSubscriptionDurable(true);
        factory.setSubscriptionShared(true);
        factory.setClientId(desk);
        factory.setConcurrency("2" + "-4");
        factory.setSessionAcknowledgeMode(jakarta.jms.Session.CLIENT_ACKNOWLEDGE);
        factory.setRecoveryInterval((long) RECOVERY);
        factory.setReceiveTimeout(2 * 1000L);
        factory.setAutoStartup(false);
        return factory;
    }
    @Bean
    DefaultJmsListenerContainerFactory work(DefaultJmsListenerContainerFactoryConfigurer configurer,
            ConnectionFactory connectionFactory) {
        var factory = new DefaultJmsListenerContainerFactory();
        configurer.configure(factory, connectionFactory);
        return factory;
    }
    @Bean
    DefaultJmsListenerContainerFactory plain(ConnectionFactory connectionFactory) {
        var factory = new DefaultJmsListenerContainerFactory();
        factory.setConcurrency(System.getenv("WORKERS"));
        if (production) { factory.setClientId("p"); }
        factory.setErrorHandler(error -> log.warn("failed", error));
        factory.setReplyQosSettings(new QosSettings(DeliveryMode.NON_PERSISTENT, 6, 60_000));
        return factory;
    }
    @Bean
    MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        converter.setTypeIdMappings(Map.of("order", Order.class, "price", shop.Price.class));
        return converter;
    }
    @Bean
    JmsTemplate reports(ConnectionFactory connectionFactory) {
        JmsTemplate template = new JmsTemplate(connectionFactory);
        template.setExplicitQosEnabled(true);
        template.setTimeToLive(60_000L);
        template.setDeliveryPersistent(false);
        template.setPriority(7);
        template.setReceiveTimeout(3000L);
        template.setDefaultDestinationName("ledger");
        return template;
    }
}
"""
LISTENERS = """\
import org.springframework.jms.annotation.JmsListener;
class Listeners {
    static final String ORDERS = "shop.orders";
    @JmsListener(id = "prices", destination = "prices", containerFactory = "feed", subscription = "desk-prices")
    void onPrice(Map<String, Object> price, @Header(JmsHeaders.TIMESTAMP) long sentAt) {}
    @JmsListener(destination = ORDERS, containerFactory = "work", concurrency = "${WORKERS:2-6}")
    @SendTo("confirmations")
    public Confirmation onOrder(@Payload Order order, @Header(name = "attempt", defaultValue = "1") int attempt) {}
    @JmsListener(destination = "audit", containerFactory = "plain")
    void audit(TextMessage message) {}
    @JmsListener(destination = "other", containerFactory = "elsewhere")
    void other(Message message) {}
}
"""


def service(folder: Path, properties: str = "") -> Findings:
    """What is found in the two sources."""
    (folder / "Config.java").write_text(CONFIG)
    (folder / "Listeners.java").write_text(LISTENERS)
    if properties:
        (folder / "application.properties").write_text(properties)
    return migrate([str(folder)], Settings(), [])


def listener(findings: Findings, destination: str) -> Listener:
    """Return the listener of a destination."""
    return next(one for one in findings.listeners if one.destination == destination)


def test_the_literals_of_a_container_factory_are_settings_of_its_listeners(tmp_path: Path) -> None:
    prices = listener(service(tmp_path), "prices")
    assert (prices.topic, prices.durable, prices.shared, prices.subscription) == (True, True, True, "desk-prices")
    assert (prices.client_id, prices.concurrency, prices.autostart) == ("desk", "2-4", False)
    assert (prices.mode, prices.label) == (AckMode.AUTO_ACKNOWLEDGE, "prices")
    assert prices.factory == "connectionFactory", "the pool's own target"


def test_the_code_serves_a_listener_as_its_container_factory_says(tmp_path: Path) -> None:
    code = as_python(service(tmp_path))
    assert (
        "serve(connection_factory, on_prices, Topic('prices'), AckMode.AUTO_ACKNOWLEDGE, subscription='desk-prices',"
        " durable=True, shared=True, client_id='desk')"
    ) in code
    assert "PYJMSACK_CLIENT_ID" not in code, "the bean says the client id"


def test_a_container_factory_that_boot_configures_takes_the_properties_of_boot(tmp_path: Path) -> None:
    found = service(tmp_path, "spring.jms.listener.min-concurrency=3\nspring.jms.listener.session.transacted=false\n")
    orders = listener(found, "shop.orders")
    assert orders.mode is AckMode.AUTO_ACKNOWLEDGE
    assert orders.concurrency == "2-6", "the annotation's own goes first"
    assert listener(service(tmp_path, "spring.jms.x=y\n"), "shop.orders").mode is AckMode.SESSION_TRANSACTED


def test_a_listener_without_a_container_factory_takes_the_properties_of_boot(tmp_path: Path) -> None:
    (tmp_path / "application.yml").write_text("spring.jms: {pub-sub-domain: true, listener: {max-concurrency: 4}}\n")
    (tmp_path / "L.java").write_text('@JmsListener(destination = "prices")\nvoid f(String body) {}\n')
    (found,) = migrate([str(tmp_path)], Settings(), []).listeners
    assert (found.topic, found.concurrency, found.mode) == (True, "1-4", AckMode.SESSION_TRANSACTED)


def test_a_container_factory_of_ones_own_is_not_transacted_as_boots_are(tmp_path: Path) -> None:
    assert listener(service(tmp_path), "audit").mode is AckMode.AUTO_ACKNOWLEDGE


def test_values_that_are_no_literals_stay_by_hand_with_their_reason(tmp_path: Path) -> None:
    found = service(tmp_path)
    concurrency, client_id = row(found, "plain.concurrency"), row(found, "plain.clientId")
    assert (concurrency.verdict, client_id.verdict) == (Verdict.BY_HAND, Verdict.BY_HAND)
    assert "neither a literal nor a constant" in concurrency.why
    assert "under a condition" in client_id.why
    assert row(found, "plain.errorHandler").python == "app.listener(..., on_error=f)"
    named = [one for one in found.rows if one.key == "@JmsListener.containerFactory"]
    assert [(one.value, one.verdict) for one in named] == [
        ("feed", Verdict.CHANGED),
        ("work", Verdict.CHANGED),
        ("plain", Verdict.BY_HAND),
        ("elsewhere", Verdict.BY_HAND),
    ]
    assert "concurrency, clientId" in named[2].why
    assert "the sources do not have the bean" in named[3].why


ROWS = [
    ("feed.clientId", "app.listener(..., client_id='desk')", Verdict.CHANGED),
    ("feed.autoStartup", "app.listener(..., autostart=False)", Verdict.CHANGED),
    ("feed.sessionAcknowledgeMode", "app.listener(..., mode='individual')", Verdict.CHANGED),
    ("feed.receiveTimeout", "", Verdict.IGNORED),
    ("feed.recoveryInterval", "", Verdict.IGNORED),
    ("connectionFactory.sessionCacheSize", "", Verdict.IGNORED),
    ("connectionFactory.callTimeout", "jms.requestTimeout=10000&jms.sendTimeout=10000", Verdict.CHANGED),
    ("json", "JsonConverter('_type', {'order': Order, 'price': Price})", Verdict.CHANGED),
    ("reports.explicitQosEnabled", "", Verdict.IGNORED),
    ("reports.timeToLive", "app.sender.send(..., time_to_live=60)", Verdict.CHANGED),
    (
        "reports.deliveryPersistent",
        "app.sender.send(..., delivery_mode=DeliveryMode.NON_PERSISTENT)",
        Verdict.CHANGED,
    ),
    ("reports.receiveTimeout", "app.sender.request(..., timeout=3)", Verdict.CHANGED),
    ("reports.defaultDestinationName", 'create_queue("ledger")', Verdict.SAME),
    (
        "plain.replyQosSettings",
        "return Answer(body, delivery_mode=DeliveryMode.NON_PERSISTENT, priority=6, time_to_live=60)",
        Verdict.CHANGED,
    ),
]


@pytest.mark.parametrize(("key", "python", "verdict"), ROWS)
def test_each_setter_has_a_row_with_its_value_in_python(
    tmp_path: Path, key: str, python: str, verdict: Verdict
) -> None:
    found = row(service(tmp_path), key)
    assert (found.python, found.verdict) == (python, verdict)


def test_a_factory_of_code_becomes_a_url_and_its_password_is_never_shown(tmp_path: Path) -> None:
    found = service(tmp_path)
    (factory,) = found.factories
    assert factory.url == "amqp://a:5672?jms.requestTimeout=10000&jms.sendTimeout=10000&profile=artemis"
    assert (factory.username, factory.secrets) == ("shop", {"jms.password": "PYJMSACK_PASSWORD"})
    assert "s3cret" not in repr(found) + as_python(found)


def test_the_factory_of_classic_has_its_login_before_its_url(tmp_path: Path) -> None:
    text = """\
import org.apache.activemq.ActiveMQConnectionFactory; // jms
class C { @Bean ConnectionFactory cf() { return new ActiveMQConnectionFactory("u", "p4ss", "tcp://a:61616"); } }
"""
    found = of_text(tmp_path, "C.java", text)
    assert (found.factories[0].username, found.factories[0].client) == ("u", "activemq")
    assert "p4ss" not in repr(found)


def test_a_url_that_is_no_literal_is_said(tmp_path: Path) -> None:
    text = "class C { @Bean ConnectionFactory jms() { return new ActiveMQConnectionFactory(url()); } }"
    found = of_text(tmp_path, "C.java", text)
    assert (row(found, "jms").verdict, found.factories) == (Verdict.BY_HAND, [])


def test_constants_of_other_sources_are_known(tmp_path: Path) -> None:
    (tmp_path / "Names.java").write_text('class Names { public static final String QUEUE = "${q:shop}.orders"; }')
    (tmp_path / "L.java").write_text("@JmsListener(destination = Names.QUEUE) void f() {}")
    assert migrate([str(tmp_path)], Settings(), []).listeners[0].destination == "shop.orders"


def test_a_header_is_written_as_a_parameter(tmp_path: Path) -> None:
    found = service(tmp_path)
    assert [one.python for one in found.rows if one.key == "@Header"] == [
        "sent_at: Annotated[datetime, Header('JMSTimestamp')]",
        "attempt: Annotated[int, Header('attempt', default=1)]",
    ]
    orders = listener(found, "shop.orders")
    assert (orders.function, orders.reply_to, orders.answers) == ("onOrder", "confirmations", "Confirmation")


def test_a_concurrency_that_is_none_is_said(tmp_path: Path) -> None:
    found = of_text(tmp_path, "L.java", '@JmsListener(destination = "q", concurrency = "${N:many}") void f() {}')
    assert (row(found, "@JmsListener.concurrency").verdict, found.listeners[0].concurrency) == (Verdict.BY_HAND, "1")


VALUES = [
    ('"a" + "b"', "ab"),
    ('"a\\"b\\u0041"', 'a"bA'),
    ("1_000L", "1000"),
    ("60 * 1000", "60000"),
    ("(long) 5", "5"),
    ("Boolean.TRUE", "true"),
    ("-1", "-1"),
    ("next()", None),
    ("1 + 1", None),
    ("unknown", None),
    ("flag ? 1 : 2", None),
    ("Duration.ofSeconds(5).toMillis()", None),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_an_expression_has_a_value_only_if_it_is_a_literal(expression: str, value: str | None) -> None:
    text = f"@Bean A f() {{ var a = new JmsTemplate(); a.setPriority({expression}); return a; }}"
    (bean,) = beans_of("A.java", tokens_of(text), Known({}, {}))
    assert bean.made.text("priority") == value


BROKEN = ["@Bean", "@Bean A f(", "@Bean A f() {", "@Bean A f() { return new", '@Bean("', "@Bean A f() { a.setB("]


@pytest.mark.parametrize("text", BROKEN)
def test_half_a_bean_is_no_error(text: str) -> None:
    assert beans_of("A.java", tokens_of(text), Known({}, {})) == []


HOSTILE = ["@Bean ", "@Bean(", "@Value(", "new A(", "/*", '"', '"""', "a.setB(", "static final A = "]
HOSTILE += ["@JmsListener(", "@"]


@pytest.mark.full_tier("each case needs seconds of a core")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", HOSTILE)
def test_the_time_grows_with_the_length_of_a_source_only(tmp_path: Path, part: str) -> None:
    """A quadratic reader would take minutes for it."""
    text = "class jms { " + part * (100_000 // len(part)) + "\n@Bean A f() {" + "a.b(" * 5_000
    of_text(tmp_path, "A.java", text)
