"""The keys for messaging in Spring Boot, in the Spring Boot starter of Qpid JMS, and in Camel's components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyjmsack.java_options.reasons import NO_JAVA_OBJECTS, NO_POOL
from pyjmsack.migrate.model import Verdict

__all__ = ["BOOT_KEYS", "PREFIXES", "BootKey", "squashed"]


@dataclass(frozen=True, slots=True)
class BootKey:
    """One key and its verdict. If ``role`` is empty, the verdict and the reason are the whole result for the key."""

    name: str
    role: str = ""
    """The kind of setting: ``url``, ``host``, ``port``, ``option``, ``listener``, ``template`` or ``mode``. Otherwise
    empty.
    """
    target: str = ""
    """The URL option, or the setting of a listener or send, that the key sets."""
    unit: str = ""
    """The unit of a duration in the result: ``ms`` in a URL option, ``s`` in Python. Empty if the value is not a
    duration.
    """
    verdict: Verdict = Verdict.CHANGED
    why: str = ""
    client: str = ""


def squashed(key: str) -> str:
    """Return a key in the form in which Spring's relaxed binding compares keys. ``brokerUrl``, ``broker-url`` and
    ``BROKER_URL`` have the same form.
    """
    return key.lower().replace("-", "").replace("_", "").replace(".", "").partition("[")[0]


_CACHE: Final = "keep the session, consumer and producer objects in variables of your own"
_INSIDE: Final = (
    "no broker runs inside a Python process; pyjmsack.broker.EmbeddedArtemis and EmbeddedActiveMQ start one"
)
_SPRING: Final = "the setting changes only the inside of Spring's container"
_CAMEL: Final = "the setting changes only the inside of Camel's JMS component"
_JNDI: Final = "pyjmsack has no JNDI; give the URL of the broker, which `pyjmsack migrate jndi.properties` translates"
_CONVERT: Final = "conversions are Python code: your own function around the body"
_QOS: Final = "in pyjmsack an argument of send() always has an effect, so no switch is needed"
_REPLY: Final = "a listener that answers sends to message.reply_to; a request waits on a temporary queue"

PREFIXES: Final = (
    "spring.activemq",
    "spring.artemis",
    "spring.jms",
    "spring.qpidjms",
    "amqphub.amqp10jms",
    "camel.component.activemq",
    "camel.component.activemq6",
    "camel.component.amqp",
    "camel.component.jms",
    "camel.component.sjms",
    "camel.component.sjms2",
)
"""The prefixes of keys that are about messaging."""


def _ignored(prefix: str, names: str, why: str) -> Iterator[BootKey]:
    for name in names.split():
        yield BootKey(f"{prefix}.{name}", verdict=Verdict.IGNORED, why=why)


def _by_hand(prefix: str, names: str, why: str) -> Iterator[BootKey]:
    for name in names.split():
        yield BootKey(f"{prefix}.{name}", verdict=Verdict.BY_HAND, why=why)


def _pool(prefix: str) -> Iterator[BootKey]:
    names = (
        "enabled max-connections max-sessions-per-connection maximum-active-session-per-connection idle-timeout"
        " block-if-full block-if-full-timeout time-between-expiration-check use-anonymous-producers expiry-timeout"
        " create-connection-on-startup reconnect-on-exception block-if-session-pool-is-full"
        " block-if-session-pool-is-full-timeout connection-idle-timeout connection-check-interval"
        " explicit-producer-cache-size use-provider-jms-context configuration"
    )
    yield from _ignored(f"{prefix}.pool", names, NO_POOL)


def _login(prefix: str, client: str, user: str, url: str) -> Iterator[BootKey]:
    yield BootKey(f"{prefix}.{url}", "url", client=client)
    yield BootKey(f"{prefix}.{user}", "option", "jms.username", client=client)
    yield BootKey(f"{prefix}.password", "option", "jms.password", client=client)


def _boot() -> Iterator[BootKey]:
    active, artemis, jms = "spring.activemq", "spring.artemis", "spring.jms"
    yield from _login(active, "activemq", "user", "broker-url")
    yield from _login(artemis, "artemis", "user", "broker-url")
    yield BootKey(f"{artemis}.host", "host", client="artemis")
    yield BootKey(f"{artemis}.port", "port", client="artemis")
    yield BootKey(f"{active}.close-timeout", "option", "jms.closeTimeout", "ms", client="activemq")
    yield BootKey(f"{active}.send-timeout", "option", "jms.sendTimeout", "ms", client="activemq")
    yield BootKey(f"{active}.non-blocking-redelivery", "option", "jms.nonBlockingRedelivery", client="activemq")
    yield from _ignored(active, "packages.trust-all packages.trusted", NO_JAVA_OBJECTS)
    yield from _ignored(artemis, "trust-all trusted-packages", NO_JAVA_OBJECTS)
    yield from _by_hand(active, "in-memory embedded.enabled", _INSIDE)
    embedded = "embedded.enabled embedded.persistent embedded.data-directory embedded.queues embedded.topics"
    yield from _by_hand(artemis, f"{embedded} embedded.server-id embedded.cluster-password embedded.queue", _INSIDE)
    yield BootKey(f"{artemis}.mode", "mode")
    yield from _pool(active)
    yield from _pool(artemis)
    yield from _pool("spring.jms")
    yield BootKey(f"{jms}.pub-sub-domain", "listener", "topic")
    yield BootKey(f"{jms}.subscription-durable", "listener", "durable")
    yield BootKey(f"{jms}.client-id", "option", "jms.clientID")
    yield from _by_hand(jms, "jndi-name", _JNDI)
    yield from _ignored(jms, "cache.enabled cache.consumers cache.producers cache.session-cache-size", _CACHE)
    yield BootKey(f"{jms}.listener.acknowledge-mode", "listener", "acknowledge")
    yield BootKey(f"{jms}.listener.session.acknowledge-mode", "listener", "acknowledge")
    yield BootKey(f"{jms}.listener.session.transacted", "listener", "transacted")
    yield BootKey(f"{jms}.listener.concurrency", "listener", "least")
    yield BootKey(f"{jms}.listener.min-concurrency", "listener", "least")
    yield BootKey(f"{jms}.listener.max-concurrency", "listener", "most")
    yield from _ignored(f"{jms}.listener", "receive-timeout max-messages-per-task observation-enabled", _SPRING)
    yield BootKey(f"{jms}.listener.auto-startup", "listener", "autostart")
    yield BootKey(f"{jms}.template.default-destination", "template", "destination")
    yield BootKey(f"{jms}.template.delivery-delay", "template", "delivery_delay", "s")
    yield BootKey(f"{jms}.template.time-to-live", "template", "time_to_live", "s")
    yield BootKey(f"{jms}.template.delivery-mode", "template", "delivery_mode")
    yield BootKey(f"{jms}.template.priority", "template", "priority")
    yield BootKey(f"{jms}.template.receive-timeout", "template", "timeout", "s")
    yield BootKey(f"{jms}.template.session.acknowledge-mode", "template", "acknowledge")
    yield BootKey(f"{jms}.template.session.transacted", "template", "transacted")
    yield BootKey(f"{jms}.template.qos-enabled", "template", "qos")
    yield from _ignored(f"{jms}.template", "observation-enabled", "the setting is for the metrics of Spring")


def _qpid() -> Iterator[BootKey]:
    for prefix in ("amqphub.amqp10jms", "spring.qpidjms"):
        yield from _login(prefix, "qpid", "username", "remote-url")
        yield BootKey(f"{prefix}.remoteuri", "url", client="qpid")
        yield BootKey(f"{prefix}.client-id", "option", "jms.clientID", client="qpid")
        yield BootKey(f"{prefix}.receive-local-only", "option", "jms.receiveLocalOnly", client="qpid")
        yield BootKey(f"{prefix}.receive-no-wait-local-only", "option", "jms.receiveNoWaitLocalOnly", client="qpid")
        policy = "deserialization-policy.allow-list deserialization-policy.deny-list"
        policy += " deserialization-policy.white-list deserialization-policy.black-list"
        yield from _ignored(prefix, policy, NO_JAVA_OBJECTS)
        yield from _pool(prefix)


_OF_CAMEL: Final = (
    "accept-messages-while-stopping allow-additional-headers allow-auto-wired-connection-factory allow-null-"
    " body allow-auto-wired-destination-resolver allow-reply-manager-quick-stop always-copy-message artemis-"
    " streaming-enabled async-consumer async-start-listener async-stop-listener autowired-enabled bridge-error-"
    " handler cache-level cache-level-name configuration consumer-type default-task-executor-type destination-"
    " resolver eager-loading-of-properties eager-poison-body enabled error-handler-log-stack-trace error-"
    " handler-logging-level expose-listener-session force-send-original-message format-date-headers-to-iso8601"
    " header-filter-strategy health-check-consumer-enabled health-check-producer-enabled idle-consumer-limit"
    " idle-receives-per-task-limit idle-task-execution-limit include-all-jms-x-properties include-all-jmsx-"
    " properties include-amqp-annotations include-sent-jms-message-id include-sent-jmsmessage-id jms-key-"
    " format-strategy lazy-create-transaction-manager lazy-start-producer max-messages-per-task message-"
    " created-strategy message-listener-container-factory preserve-message-qos queue-browse-strategy recovery-"
    " interval reply-to-cache-level-name reply-to-destination-selector-name request-timeout-checker-interval"
    " service-location-enabled stream-message-type-enabled synchronous task-executor temporary-queue-resolver"
    " test-connection-on-startup transaction-manager transaction-name transaction-timeout transfer-exception"
    " transfer-exchange use-message-id-as-correlation-id wait-for-provision-correlation-to-be-updated-counter"
    " wait-for-provision-correlation-to-be-updated-thread-sleeping-time wait-for-temporary-reply-to-to-be-"
    " updated-counter wait-for-temporary-reply-to-to-be-updated-thread-sleeping-time allow-serialized-headers"
    " replyto-on-timeout-max-concurrent-consumers reply-to-on-timeout-max-concurrent-consumers transacted-in-"
    " out jms-message-type receive-timeout auto-startup"
)


def _camel(prefix: str) -> Iterator[BootKey]:
    client = {"activemq": "activemq", "activemq6": "activemq", "amqp": "qpid"}.get(prefix.rpartition(".")[2], "")
    yield from _login(prefix, client, "username", "broker-url")
    yield BootKey(f"{prefix}.host", "host", client=client)
    yield BootKey(f"{prefix}.port", "port", client=client)
    yield BootKey(f"{prefix}.client-id", "option", "jms.clientID", client=client)
    yield from _ignored(prefix, _OF_CAMEL, _CAMEL)
    yield from _ignored(prefix, "use-pooled-connection use-single-connection connection-pooling", NO_POOL)
    yield from _ignored(prefix, "jms-max-connections jms-maximum-active-session-per-connection", NO_POOL)
    yield from _ignored(prefix, "connection-count", NO_POOL)
    yield from _ignored(prefix, "trust-all-packages", NO_JAVA_OBJECTS)
    yield BootKey(f"{prefix}.acknowledgement-mode-name", "listener", "acknowledge")
    yield BootKey(f"{prefix}.transacted", "listener", "transacted")
    yield BootKey(f"{prefix}.concurrent-consumers", "listener", "least")
    yield BootKey(f"{prefix}.max-concurrent-consumers", "listener", "most")
    yield BootKey(f"{prefix}.selector", "listener", "selector")
    yield BootKey(f"{prefix}.subscription-durable", "listener", "durable")
    yield BootKey(f"{prefix}.subscription-shared", "listener", "shared")
    yield BootKey(f"{prefix}.subscription-name", "listener", "subscription")
    yield BootKey(f"{prefix}.durable-subscription-name", "listener", "subscription")
    yield BootKey(f"{prefix}.pub-sub-domain", "listener", "topic")
    yield BootKey(f"{prefix}.pub-sub-no-local", "listener", "no_local")
    yield BootKey(f"{prefix}.delivery-delay", "template", "delivery_delay", "s")
    yield BootKey(f"{prefix}.time-to-live", "template", "time_to_live", "s")
    yield BootKey(f"{prefix}.priority", "template", "priority")
    yield BootKey(f"{prefix}.delivery-mode", "template", "delivery_mode")
    yield BootKey(f"{prefix}.delivery-persistent", "template", "persistent")
    yield BootKey(f"{prefix}.request-timeout", "template", "timeout", "s")
    yield from _ignored(prefix, "explicit-qos-enabled disable-time-to-live", _QOS)
    yield from _by_hand(prefix, "message-id-enabled", "producer.disable_message_id")
    yield from _by_hand(prefix, "message-timestamp-enabled", "producer.disable_message_timestamp")
    yield from _by_hand(prefix, "artemis-consumer-priority", 'create_queue("name?consumer.priority=N")')
    yield from _by_hand(prefix, "message-converter map-jms-message", _CONVERT)
    yield from _by_hand(
        prefix, "exception-listener error-handler", "connection.exception_listener, and your handler's own try"
    )
    replies = (
        "reply-to reply-to-type reply-to-override reply-to-consumer-type reply-to-concurrent-consumers disable-reply-to"
    )
    replies += " reply-to-max-concurrent-consumers reply-to-delivery-persistent reply-to-same-destination-allowed"
    yield from _by_hand(prefix, f"{replies} correlation-property", _REPLY)
    yield from _by_hand(prefix, "connection-factory", "the value names a bean: translate the bean")
    yield from _by_hand(
        prefix, "use-ssl trust-store-location trust-store-password trust-store-type", "amqps:// in the URL"
    )
    yield from _by_hand(
        prefix, "key-store-location key-store-password key-store-type", "transport.keyStore* in the URL"
    )
    yield from _by_hand(prefix, "use-topic-prefix", "jms.topicPrefix=topic:// where the broker needs it")
    yield from _by_hand(prefix, "embedded", _INSIDE)


_ALL: Final = (
    *_boot(),
    *_qpid(),
    *(row for prefix in PREFIXES if prefix.startswith("camel") for row in _camel(prefix)),
)

BOOT_KEYS: Final[Mapping[str, BootKey]] = {squashed(row.name): row for row in _ALL}
"""The keys. The index is the name of the key in the form of :func:`squashed`."""
