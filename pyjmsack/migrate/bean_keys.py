"""For each property of Spring's beans for messaging, and of connection pools: the replacement in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyjmsack.java_options.reasons import NO_POOL
from pyjmsack.migrate.model import Verdict

__all__ = ["ADDS_CONSUMERS", "CLASSES", "CONTAINER", "POOL", "TEMPLATE", "WRAPPERS", "Said"]

Said = tuple[Verdict, str, str]
"""The replacement of a property: the verdict, the Python text and the reason. ``{}`` in the Python text stands for the
value.
"""

_SPRING: Final = "the setting changes only the inside of Spring"
_TUNING: Final = "a listener of pyjmsack does not poll the broker, so the setting has no counterpart"
_CONVERT: Final = "conversions are Python code around the body of a message"
_TX: Final = (
    "a session's transaction covers the messages that the session receives and sends; a database cannot join the"
    " transaction"
)

CLASSES: Final[Mapping[str, str]] = {
    "ActiveMQConnectionFactory": "factory",
    "ActiveMQSslConnectionFactory": "factory",
    "ActiveMQXAConnectionFactory": "factory",
    "ActiveMQXASslConnectionFactory": "factory",
    "ActiveMQJMSConnectionFactory": "factory",
    "ActiveMQQueueConnectionFactory": "factory",
    "ActiveMQTopicConnectionFactory": "factory",
    "JmsConnectionFactory": "factory",
    "PooledConnectionFactory": "pool",
    "XaPooledConnectionFactory": "pool",
    "JmsPoolConnectionFactory": "pool",
    "JmsPoolXAConnectionFactory": "pool",
    "CachingConnectionFactory": "pool",
    "SingleConnectionFactory": "pool",
    "SingleConnectionFactory102": "pool",
    "UserCredentialsConnectionFactoryAdapter": "pool",
    "TransactionAwareConnectionFactoryProxy": "pool",
    "DelegatingConnectionFactory": "pool",
    "RedeliveryPolicy": "redeliveryPolicy",
    "ActiveMQPrefetchPolicy": "prefetchPolicy",
    "JmsDefaultRedeliveryPolicy": "redeliveryPolicy",
    "JmsDefaultPrefetchPolicy": "prefetchPolicy",
    "JmsDefaultPresettlePolicy": "presettlePolicy",
    "RedeliveryPolicyMap": "redeliveryPolicyMap",
    "ActiveMQQueue": "queue",
    "ActiveMQTopic": "topic",
    "ActiveMQJMSQueue": "queue",
    "JmsQueue": "queue",
    "JmsTopic": "topic",
    "DefaultMessageListenerContainer": "container",
    "SimpleMessageListenerContainer": "container",
    "DefaultMessageListenerContainer102": "container",
    "DefaultJmsListenerContainerFactory": "container",
    "SimpleJmsListenerContainerFactory": "container",
    "JmsTemplate": "template",
    "JmsMessagingTemplate": "template",
    "JmsTemplate102": "template",
    "JmsTransactionManager": "other",
    "JmsConfiguration": "container",
    "JndiObjectFactoryBean": "jndi",
    "MessageListenerAdapter": "other",
    "SimpleMessageConverter": "other",
    "MappingJackson2MessageConverter": "other",
    "MarshallingMessageConverter": "other",
    "DynamicDestinationResolver": "other",
    "JndiDestinationResolver": "other",
    "BeanFactoryDestinationResolver": "other",
    "JmsComponent": "component",
    "ActiveMQComponent": "component",
    "AMQPComponent": "component",
    "EmbeddedActiveMQ": "embedded",
    "EmbeddedJMS": "embedded",
    "BrokerFactoryBean": "embedded",
    "BrokerService": "embedded",
}
"""For the simple name of each class: the kind of its beans."""

WRAPPERS: Final = ("connectionFactory", "targetConnectionFactory", "connection-factory", "configuration")
"""Properties with which a bean refers to a connection factory."""


def _all(names: str, verdict: Verdict, python: str, why: str) -> Iterator[tuple[str, Said]]:
    for name in names.split():
        yield name, (verdict, python, why)


POOL: Final[Mapping[str, Said]] = dict(
    (
        *_all("maxConnections maximumActive maximumActiveSessionPerConnection", Verdict.IGNORED, "", NO_POOL),
        *_all("maxSessionsPerConnection sessionCacheSize cacheConsumers cacheProducers", Verdict.IGNORED, "", NO_POOL),
        *_all("idleTimeout expiryTimeout timeBetweenExpirationCheckMillis", Verdict.IGNORED, "", NO_POOL),
        *_all("connectionIdleTimeout connectionCheckInterval connectionTimeout", Verdict.IGNORED, "", NO_POOL),
        *_all("blockIfSessionPoolIsFull blockIfSessionPoolIsFullTimeout", Verdict.IGNORED, "", NO_POOL),
        *_all("useAnonymousProducers explicitProducerCacheSize useProviderJMSContext", Verdict.IGNORED, "", NO_POOL),
        *_all("createConnectionOnStartup synchedLocalTransactionAllowed", Verdict.IGNORED, "", NO_POOL),
        *_all("transactionManager xaConnectionFactory", Verdict.REFUSED, "", "this library has no XA transactions"),
        *_all("faultTolerantConnections", Verdict.IGNORED, "", "a failover:(...) URL reconnects by itself"),
        *_all("reconnectOnException", Verdict.CHANGED, "failover:(...)", "a failover:(...) URL reconnects by itself"),
        *_all("exceptionListener", Verdict.BY_HAND, "connection.exception_listener = ...", "write this in your code"),
        *_all("clientId clientID", Verdict.CHANGED, "client_id={!r}", "an argument of ConnectionFactory"),
        *_all("username user", Verdict.CHANGED, "username={!r}", "an argument of ConnectionFactory"),
        *_all("password", Verdict.CHANGED, "env:PYJMSACK_PASSWORD", "a secret stays out of files; set this variable"),
    )
)
"""The replacement of each property of a pool, or of a connection factory that wraps another connection factory."""

ADDS_CONSUMERS: Final = (
    "Spring's container adds consumers while messages wait; the generated code opens the smallest number of consumers"
)
CONTAINER: Final[Mapping[str, Said]] = dict(
    (
        *_all("concurrency concurrentConsumers", Verdict.CHANGED, "{} sessions with a consumer each", ""),
        *_all(
            "maxConcurrentConsumers",
            Verdict.CHANGED,
            "at most {} sessions with a consumer each",
            ADDS_CONSUMERS,
        ),
        *_all("messageSelector selector", Verdict.SAME, "create_consumer(destination, {!r})", ""),
        *_all(
            "pubSubDomain subscriptionDurable subscriptionShared",
            Verdict.CHANGED,
            "",
            "the code of the listener has this setting",
        ),
        *_all("durableSubscriptionName subscriptionName subscription", Verdict.CHANGED, "{!r}", "the subscription"),
        *_all("pubSubNoLocal", Verdict.SAME, "create_consumer(topic, no_local={})", ""),
        *_all("clientId client-id", Verdict.CHANGED, "client_id={!r}", "an argument of ConnectionFactory"),
        *_all("receiveTimeout receive-timeout idleTaskExecutionLimit idleConsumerLimit", Verdict.IGNORED, "", _TUNING),
        *_all("maxMessagesPerTask idleReceivesPerTaskLimit prefetch-polling", Verdict.IGNORED, "", _TUNING),
        *_all("cacheLevel cacheLevelName cache taskExecutor task-executor", Verdict.IGNORED, "", _TUNING),
        *_all("acceptMessagesWhileStopping virtualThreads phase autoStartup", Verdict.IGNORED, "", _SPRING),
        *_all("exposeListenerSession beanName connectionLost factory-id", Verdict.IGNORED, "", _SPRING),
        *_all(
            "container-type container-class observationRegistry id response-destination-type",
            Verdict.IGNORED,
            "",
            _SPRING,
        ),
        *_all(
            "prefetch",
            Verdict.BY_HAND,
            'create_queue("name?consumer.prefetchSize={}")',
            "in Spring, prefetch counts the messages of one transaction; in pyjmsack, prefetch counts the messages"
            " that the broker sends ahead",
        ),
        *_all(
            "recoveryInterval recovery-interval backOff back-off",
            Verdict.CHANGED,
            "failover.reconnectDelay={}",
            "a failover:(...) URL looks for the broker by itself",
        ),
        *_all(
            "transactionManager transaction-manager transactionTimeout transactionName",
            Verdict.BY_HAND,
            "AckMode.SESSION_TRANSACTED",
            _TX,
        ),
        *_all(
            "messageListener messageConverter message-converter", Verdict.BY_HAND, "", "write the code of your handler"
        ),
        *_all("destinationResolver destination-resolver qosSettings replyQosSettings", Verdict.BY_HAND, "", _CONVERT),
        *_all("errorHandler error-handler", Verdict.BY_HAND, "", "write code: catch these errors in your handler"),
        *_all("exceptionListener", Verdict.BY_HAND, "connection.exception_listener = ...", "write this in your code"),
        *_all(
            "response-destination replyPubSubDomain",
            Verdict.BY_HAND,
            "",
            "write code that sends the answer to message.reply_to",
        ),
        *_all(
            "resource-adapter activation-spec-factory resourceAdapter activationSpecFactory",
            Verdict.REFUSED,
            "",
            "pyjmsack has no Java EE container; a listener receives from its own connection",
        ),
        *_all("ref method", Verdict.BY_HAND, "", "write the code of your handler"),
    )
)
"""The replacement of each property of a listener container. The destination and the acknowledge mode are not in this
table, because other code reads these two.
"""

_QOS: Final = "an argument of each send"
TEMPLATE: Final[Mapping[str, Said]] = dict(
    (
        *_all("timeToLive", Verdict.CHANGED, "send(..., time_to_live={s})", f"{_QOS}; seconds in Python"),
        *_all("deliveryDelay", Verdict.CHANGED, "send(..., delivery_delay={s})", f"{_QOS}; seconds in Python"),
        *_all("receiveTimeout", Verdict.CHANGED, "receive(timeout={s})", "seconds in Python"),
        *_all("priority", Verdict.SAME, "send(..., priority={})", _QOS),
        *_all(
            "deliveryMode", Verdict.CHANGED, "send(..., delivery_mode={})", f"{_QOS}; 1 NON_PERSISTENT, 2 PERSISTENT"
        ),
        *_all("deliveryPersistent", Verdict.CHANGED, "send(..., delivery_mode=...)", f"{_QOS}; true is PERSISTENT"),
        *_all("explicitQosEnabled", Verdict.IGNORED, "", "in pyjmsack an argument of send() always has an effect"),
        *_all("messageIdEnabled", Verdict.CHANGED, "producer.disable_message_id", "the opposite value"),
        *_all("messageTimestampEnabled", Verdict.CHANGED, "producer.disable_message_timestamp", "the opposite value"),
        *_all(
            "pubSubDomain",
            Verdict.CHANGED,
            "create_topic(name) if {}",
            "in pyjmsack the destination object says whether it is a topic",
        ),
        *_all("pubSubNoLocal", Verdict.SAME, "create_consumer(topic, no_local={})", ""),
        *_all(
            "sessionTransacted",
            Verdict.CHANGED,
            "AckMode.SESSION_TRANSACTED if {}",
            "call session.commit() after the sends",
        ),
        *_all("sessionAcknowledgeMode sessionAcknowledgeModeName", Verdict.CHANGED, "AckMode of the session", ""),
        *_all("messageConverter destinationResolver jmsTemplate", Verdict.BY_HAND, "", _CONVERT),
    )
)
"""The replacement of each property of ``JmsTemplate``. ``{s}`` in the Python text stands for the value in seconds."""
