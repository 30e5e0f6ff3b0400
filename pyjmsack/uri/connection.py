"""The ``jms.*`` options. These options hold for the whole life of a connection, over AMQP and over STOMP.

The limit of message sizes, ``jms.maxMessageSize``, takes effect in ``providers/amqp/provider.py``,
``amqp/engine/link.py``, ``amqp/proton_ends.py`` and ``amqp/oversize.py``, and in ``providers/stomp/provider.py`` and
``stomp/frames.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyjmsack.destination import Destination
from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.types import Outcome
from pyjmsack.uri.option import (
    BOOLEAN,
    BYTES_OR_UNLIMITED,
    MILLIS,
    MILLIS_FROM_0,
    MILLIS_OR_FOREVER,
    NAME,
    PASSWORD,
    SHARE_OR_UNLIMITED,
    TEXT,
    USER,
    Kind,
    Secret,
    choice,
    integer,
    option,
    outcomes,
)
from pyjmsack.uri.policy import PrefetchPolicy, PresettlePolicy, RedeliveryPolicy, matches

__all__ = ["ConnectionOptions"]

_ACTIVEMQ: Final = "ActiveMQ Classic"


def _tracing(text: str) -> str:
    if text.lower() == "opentracing":
        raise UnsupportedFeatureException("jms.tracing=opentracing is not supported; use jms.tracing=opentelemetry")
    return {"noop": "noop", "opentelemetry": "opentelemetry"}[text.lower()]


_LISTENER_ERROR = outcomes(Outcome.MODIFIED_FAILED, Outcome.RELEASED)
_TRACING = Kind("choice", "one of noop, opentelemetry", _tracing)
_MESSAGE_IDS = choice(
    {"DEFAULT": "", "UUID": "ID:AMQP_UUID:", "UUID_STRING": "ID:AMQP_NO_PREFIX:", "PREFIXED_UUID_STRING": "ID:"}
)
"""For each name, the text before the UUID in ``JMSMessageID``. This text decides how AMQP encodes the id (S159). The
text is empty for ``DEFAULT``, because such ids are not UUIDs.
"""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The ``jms.*`` options. These options hold for the whole life of a connection, over AMQP and over STOMP. Durations
    are in seconds.
    """

    username: str | None = option("jms.username", USER, None, "user name of the login")
    password: Secret | None = option(  # noqa: RUF009 - it returns dataclasses.field()
        "jms.password", PASSWORD, None, "password of the login; never printed"
    )
    allow_user_info: bool = option(
        "jms.allowUserInfo", BOOLEAN, "false", "take user:password@ from the URL instead of refusing it", "pyjmsack"
    )
    client_id: str | None = option(
        "jms.clientID",
        NAME,
        None,
        "the client id, which is the AMQP container id; durable subscriptions need it; generated if it is not set",
    )
    client_id_prefix: str = option("jms.clientIDPrefix", TEXT, "ID:", "text at the start of generated client ids")
    connection_id_prefix: str = option(
        "jms.connectionIDPrefix", TEXT, "ID:", "text at the start of generated connection ids"
    )
    message_id_type: str = option(
        "jms.messageIDPolicy.messageIDType",
        _MESSAGE_IDS,
        "DEFAULT",
        "form of message ids: connection id and number, an AMQP uuid, or the text of a uuid with or without `ID:`"
        " before it",
    )
    await_client_id: bool = option(
        "jms.awaitClientID",
        BOOLEAN,
        "true",
        "allow setting the client id after connecting, once, before the connection is used",
    )
    force_async_send: bool = option(
        "jms.forceAsyncSend", BOOLEAN, "false", "no send waits for the broker", also="jms.useAsyncSend"
    )
    force_sync_send: bool = option(
        "jms.forceSyncSend",
        BOOLEAN,
        "false",
        "every send waits for the broker, in transactions too, unless it has a completion listener",
        also="jms.alwaysSyncSend",
    )
    force_async_acks: bool = option(
        "jms.forceAsyncAcks",
        BOOLEAN,
        "false",
        "no effect with either value, because no acknowledgement waits for the broker",
        also="jms.sendAcksAsync",
    )
    local_message_expiry: bool = option(
        "jms.localMessageExpiry",
        BOOLEAN,
        "true",
        "drop expired messages on arrival in the client",
        also="jms.consumerExpiryCheckEnabled",
    )
    local_message_priority: bool = option(
        "jms.localMessagePriority",
        BOOLEAN,
        "false",
        "hand out prefetched messages by priority, and messages of the same priority in their order",
        also="jms.messagePrioritySupported",
    )
    disable_time_stamps_by_default: bool = option(
        "jms.disableTimeStampsByDefault", BOOLEAN, "false", "new producers send messages without time stamps", _ACTIVEMQ
    )
    validate_property_names: bool = option(
        "jms.validatePropertyNames", BOOLEAN, "true", "property names must be Java identifiers", "S160"
    )
    validate_selector: bool = option(
        "jms.validateSelector", BOOLEAN, "true", "check selectors in the client before the broker sees them", "S187"
    )
    receive_local_only: bool = option(
        "jms.receiveLocalOnly",
        BOOLEAN,
        "false",
        "a timed receive looks only into the inbox of the client, and does not ask the broker at its end",
    )
    receive_no_wait_local_only: bool = option(
        "jms.receiveNoWaitLocalOnly", BOOLEAN, "false", "receive_nowait() looks only into the inbox of the client"
    )
    max_message_size: int = option(
        "jms.maxMessageSize",
        integer(1024, 2**31 - 1, "bytes"),
        "104857600",
        "size of the largest message that is received; a larger message is refused, and the other messages are not."
        " Over STOMP the smaller value of this option and stomp.maxFrameSize counts",
        "S166",
    )
    queue_prefix: str = option("jms.queuePrefix", TEXT, "", "text before the name of every queue")
    topic_prefix: str = option("jms.topicPrefix", TEXT, "", "text before the name of every topic")
    # For close_timeout, 0 means "do not wait", as in Qpid JMS. For the options below, 0 means "no limit", as in
    # ActiveMQ, because a limit of 0 would be useless.
    close_timeout: float | None = option(
        "jms.closeTimeout", MILLIS, "60000", "limit for close(); with 0, close() does not wait", "S123"
    )
    connect_timeout: float | None = option(
        "jms.connectTimeout",
        MILLIS_OR_FOREVER,
        "15000",
        "limit for opening the connection of the protocol, after TCP and TLS",
        also="jms.connectResponseTimeout",
    )
    send_timeout: float | None = option(
        "jms.sendTimeout",
        MILLIS_OR_FOREVER,
        "-1",
        "limit for send(); the futures of send_async() have none",
        "S66",
    )
    send_timeout_forces_sync: bool = option(
        "jms.sendTimeoutForcesSync",
        BOOLEAN,
        "true",
        "with jms.sendTimeout every send waits for the broker; false, as in Qpid JMS, changes no send",
        "S62",
    )
    request_timeout: float | None = option(
        "jms.requestTimeout",
        MILLIS_OR_FOREVER,
        "-1",
        "limit for an answer of the broker, for example to the opening of a session or a commit",
    )
    warn_about_unstarted_connection_timeout: float | None = option(
        "jms.warnAboutUnstartedConnectionTimeout",
        MILLIS_OR_FOREVER,
        "500",
        "log a warning if the connection of a new consumer is not started after this time; 0 or -1 never warns",
        _ACTIVEMQ,
    )
    populate_jmsx_user_id: bool = option(
        "jms.populateJMSXUserID",
        BOOLEAN,
        "false",
        "write the user name into sent messages; with false the field is cleared",
    )
    listener_error_outcome: Outcome = option(  # noqa: RUF009 - it returns dataclasses.field()
        "jms.listenerErrorOutcome",
        _LISTENER_ERROR,
        "modified-failed",
        "outcome of a message whose listener raised an error; with released the redelivery is not counted",
        "S18",
    )
    optimize_acknowledge: bool = option(
        "jms.optimizeAcknowledge",
        BOOLEAN,
        "false",
        "in AUTO mode, and in DUPS_OK mode on queues: acknowledge messages together when 0.65 of the prefetch is"
        " consumed",
        "S39",
    )
    optimize_acknowledge_time_out: float | None = option(
        "jms.optimizeAcknowledgeTimeOut",
        MILLIS_OR_FOREVER,
        "300",
        "how long an acknowledgement may wait for others; with 0 or -1 it waits until the batch is full",
        "S41, S44",
    )
    optimized_ack_scheduled_ack_interval: float | None = option(
        "jms.optimizedAckScheduledAckInterval",
        MILLIS_OR_FOREVER,
        "0",
        "another option of ActiveMQ for the same time as jms.optimizeAcknowledgeTimeOut; the shorter time of both"
        " counts",
        "S44",
    )
    ack_window: float | None = option(
        "jms.ackWindow",
        SHARE_OR_UNLIMITED,
        "-1",
        "stop handing out messages while the unacknowledged messages are more than this factor times the prefetch; old"
        " versions of ActiveMQ had"
        " 1.5",
        "S56",
    )
    rollback_on_listener_error: bool = option(
        "jms.rollbackOnListenerError",
        BOOLEAN,
        "false",
        "an error in a listener rolls back a transacted session, and recovers a session in CLIENT mode",
        "S20",
    )
    producer_window_size: int | None = option(
        "jms.producerWindowSize",
        BYTES_OR_UNLIMITED,
        "0",
        "largest number of unconfirmed bytes of a producer; then the next send waits; 0 means no limit in bytes",
        "S65",
    )
    close_links_that_fail_on_reconnect: bool = option(
        "jms.closeLinksThatFailOnReconnect",
        BOOLEAN,
        "false",
        "in failover URLs: close only the consumer or producer that the next broker refuses, instead of leaving that"
        " broker",
        "S104",
    )
    non_blocking_redelivery: bool = option(
        "jms.nonBlockingRedelivery",
        BOOLEAN,
        "false",
        "other messages overtake a message that waits for its redelivery; with false they wait behind it",
        "S116",
    )
    exclusive_consumer: bool = option(
        "jms.exclusiveConsumer",
        BOOLEAN,
        "false",
        "set consumer.exclusive for every queue; an error if the broker does not support it",
        _ACTIVEMQ,
    )
    use_retroactive_consumer: bool = option(
        "jms.useRetroactiveConsumer",
        BOOLEAN,
        "false",
        "set consumer.retroactive for every topic; an error if the broker does not support it",
        _ACTIVEMQ,
    )
    check_for_duplicates: bool = option(
        "jms.checkForDuplicates",
        BOOLEAN,
        "true",
        "false means failover.duplicateGuard=none; without failover no acknowledged message is delivered again",
        "S105",
    )
    audit_depth: int | None = option(
        "jms.auditDepth",
        integer(1, 2**31 - 1, "messages"),
        None,
        "jms.auditDepth times jms.auditMaximumProducerNumber replaces failover.duplicateGuardSize; if only one of the"
        " two is given, the depth is 2048, or the number of producers is 64",
        "S105",
    )
    audit_maximum_producer_number: int | None = option(
        "jms.auditMaximumProducerNumber", integer(1, 2**31 - 1), None, "see jms.auditDepth", "S105"
    )
    consumer_failover_redelivery_wait_period: float = option(
        "jms.consumerFailoverRedeliveryWaitPeriod",
        MILLIS_FROM_0,
        "0",
        "with failover.transactionReplay: how long commit() waits for messages that must be delivered again",
        "S107",
    )
    use_daemon_thread: bool = option(
        "jms.useDaemonThread",
        BOOLEAN,
        "true",
        "false: an open connection of the blocking interface keeps the process alive",
    )
    tracing: str = option(
        "jms.tracing",
        _TRACING,
        "noop",
        "opentelemetry: make spans and metrics of sends, receives and acknowledgements; needs pyjmsack[otel]",
    )
    prefetch_policy: PrefetchPolicy = field(default_factory=PrefetchPolicy)
    redelivery_policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)
    presettle_policy: PresettlePolicy = field(default_factory=PresettlePolicy)
    redelivery_policies: tuple[tuple[str, RedeliveryPolicy], ...] = ()
    """The redelivery policies for single destinations, each with a pattern of names. The most specific pattern comes
    first.
    """

    def redelivery_policy_for(self, destination: Destination) -> RedeliveryPolicy:
        """Return the policy of the most specific pattern that fits the destination, or the general policy if none fits.

        Args:
            destination: the queue or topic of a consumer.
        """
        fitting = (policy for pattern, policy in self.redelivery_policies if matches(pattern, destination))
        return next(fitting, self.redelivery_policy)
