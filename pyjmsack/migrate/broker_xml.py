"""``activemq.xml`` and ``broker.xml``: the ports, their protocols, and the settings that matter to clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from pyjmsack.java_options.schemes import JAVA_SCHEMES
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.values import Missing, is_secret, resolve, shown
from pyjmsack.migrate.xml_file import Element

__all__ = ["PLAIN", "Port", "broker_of", "ports_of", "read_broker"]

_ACTIVEMQ: Final = "http://activemq.apache.org/schema/core"
_ARTEMIS: Final = ("urn:activemq", "urn:activemq:core", "urn:hornetq", "")
_ALL: Final = "CORE,AMQP,STOMP,HORNETQ,MQTT,OPENWIRE"
PLAIN: Final = "a setting of the broker; it stays where it is"
"""The reason why most settings of a broker need no change."""
_WORTH_SAYING: Final[Mapping[str, str]] = {
    "deadLetterStrategy": "where reject() and exhausted redeliveries go; stays at the broker",
    "dead-letter-address": "where rejected and exhausted messages go; stays at the broker",
    "expiry-address": "where expired messages go; stays at the broker",
    "max-delivery-attempts": "over AMQP; over STOMP Artemis never gives up: set jms.redeliveryPolicy.maxRedeliveries",
    "redelivery-delay": "the broker waits over AMQP; no effect over STOMP, where redeliveryDelay of the client does it",
    "redelivery-delay-multiplier": "as redelivery-delay",
    "max-redelivery-delay": "as redelivery-delay",
    "auto-create-queues": "false: a consumer or send to a queue that is not there is refused",
    "auto-create-addresses": "false: a send to an address that is not there is refused",
    "default-consumer-window-size": "it is for core clients only; over AMQP jms.prefetchPolicy.all counts",
    "schedulerSupport": "delivery delays work on Classic with it: say broker.scheduler=true in the URL",
    "redeliveryPlugin": "it redelivers at the broker: leave jms.redeliveryPolicy.* at its defaults",
    "virtualDestinations": "virtual topics are queues for consumers: create_queue('Consumer.NAME.VirtualTopic.X')",
    "security-enabled": "true: a login is needed, username= and password= of ConnectionFactory",
    "simpleAuthenticationPlugin": "a login is needed: username= and password= of ConnectionFactory",
    "jaasAuthenticationPlugin": "a login is needed: username= and password= of ConnectionFactory",
    "authorizationPlugin": "the login needs the rights to read, write and create what it uses",
    "security-settings": "the login needs the rights to consume, send and create what it uses",
    "amqp-use-core-subscription-naming": "true: AMQP and core clients share durable subscriptions; keep it",
    "wildcard-addresses": "which characters are wildcards in names of consumers; stays at the broker",
    "connection-ttl-override": "over AMQP the idle time-out of both ends counts",
    "page-full-policy": "what a full address does: over AMQP FAIL refuses a send, BLOCK keeps it waiting for credit",
    "address-full-policy": "what a full address does: over AMQP FAIL refuses a send, BLOCK keeps it waiting for credit",
    "constantPendingMessageLimitStrategy": "no effect over AMQP; over STOMP slow subscribers lose messages by it",
    "sslContext": "the broker's TLS; a client trusts it by transport.trustStoreLocation",
}


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a broker."""

    number: int
    protocols: frozenset[str]
    tls: bool


def broker_of(root: Element) -> str:
    """Return ``classic``, ``artemis``, or an empty text if the XML does not configure a broker."""
    if any(element.name == "broker" and element.namespace == _ACTIVEMQ for element in root.all()):
        return "classic"
    if root.name == "configuration" and root.namespace in _ARTEMIS:
        return "artemis"
    return ""


def ports_of(root: Element, known: Mapping[str, str]) -> list[Port]:
    """Return the ports on which a broker listens, if they are numbers."""
    kind = "transportConnector" if broker_of(root) == "classic" else "acceptor"
    return [port for element in root.all() if element.name == kind and (port := _port(element, known))]


def read_broker(findings: Findings, settings: Settings, file: str, root: Element, known: Mapping[str, str]) -> None:
    """Add a row for each setting of a broker, and a row that says whether the wanted protocol is on."""
    classic = broker_of(root) == "classic"
    wanted = settings.protocol.upper()
    ports = ports_of(root, known)
    top = next((element for element in root.all() if element.name == "broker"), root) if classic else root
    for element in _settings(top):
        if element.name in ("transportConnector", "acceptor"):
            _connector(findings, file, element, wanted, known)
        elif element is not top:
            _setting(findings, file, element)
    if not any(wanted in port.protocols for port in ports):
        _switched_off(findings, Place(file, top.line), wanted, classic=classic)


def _settings(top: Element) -> list[Element]:
    """Return the elements that have attributes or a text, or that have no other elements inside them."""
    return [one for one in top.all() if one.attributes or one.text.strip() or not one.children]


def _setting(findings: Findings, file: str, element: Element) -> None:
    said = _WORTH_SAYING.get(element.name, PLAIN)
    values = [f"{name.rpartition('|')[2]}={shown(name, value)}" for name, value in element.attributes.items()]
    text = element.text.strip()
    if text:
        values.append("***" if is_secret(element.name) else text)
    value = shown("value", " ".join(values))
    findings.add(Place(file, element.line), element.name, value, Verdict.BROKER, "", said)
    for name in element.attributes:
        if name in _WORTH_SAYING:
            worth = _WORTH_SAYING[name]
            value = shown(name, element.attributes[name])
            findings.add(Place(file, element.line), f"{element.name}.{name}", value, Verdict.BROKER, "", worth)


def _port(element: Element, known: Mapping[str, str]) -> Port | None:
    uri = element.get("uri") or element.text.strip()
    try:
        scheme, _, rest = resolve(uri, known).partition("://")
    except Missing:
        return None
    address, _, query = rest.partition("?")
    number = address.partition("/")[0].rpartition(":")[2]
    options = dict(parse_qsl(query.replace("&amp;", "&").replace(";", "&")))
    if not number.isdecimal():
        return None
    tls = options.get("sslEnabled") == "true" or (scheme in JAVA_SCHEMES and JAVA_SCHEMES[scheme].tls)
    return Port(int(number), _protocols(element, scheme, options), tls)


def _protocols(element: Element, scheme: str, options: Mapping[str, str]) -> frozenset[str]:
    if element.name == "acceptor":
        return frozenset(name.strip().upper() for name in options.get("protocols", _ALL).split(","))
    plain = scheme.partition("+")[0].upper()
    if scheme.startswith("auto"):
        chosen = options.get("auto.protocols", "OPENWIRE,AMQP,STOMP,MQTT")
        return frozenset(name.strip().upper().replace("DEFAULT", "OPENWIRE") for name in chosen.split(","))
    return frozenset({plain if plain in ("AMQP", "STOMP", "MQTT") else "OPENWIRE"})


def _connector(findings: Findings, file: str, element: Element, wanted: str, known: Mapping[str, str]) -> None:
    port = _port(element, known)
    uri = shown("uri", (element.get("uri") or element.text.strip()).partition("?")[0])
    key = f"{element.name} {element.get('name')}".strip()
    if port is None:
        why = "its port is not a number here: give the value of the variable in it with -D NAME=VALUE"
        findings.add(Place(file, element.line), key, uri, Verdict.BROKER, "", why)
        return
    scheme = {"AMQP": "amqp", "STOMP": "stomp"}[wanted]
    scheme = scheme if not port.tls else "amqps" if wanted == "AMQP" else "stomp+ssl"
    if wanted in port.protocols:
        why = f"this port speaks {wanted}"
        findings.add(Place(file, element.line), key, uri, Verdict.BROKER, f"{scheme}://HOST:{port.number}", why)
    else:
        why = f"this port does not speak {wanted}; it speaks {', '.join(sorted(port.protocols))}"
        findings.add(Place(file, element.line), key, uri, Verdict.BROKER, "", why)


def _switched_off(findings: Findings, place: Place, wanted: str, *, classic: bool) -> None:
    port = {"AMQP": 5672, "STOMP": 61613}[wanted]
    if classic:
        add = f'<transportConnector name="{wanted.lower()}" uri="{wanted.lower()}://0.0.0.0:{port}"/>'
    else:
        add = f'<acceptor name="{wanted.lower()}">tcp://0.0.0.0:{port}?protocols={wanted}</acceptor>'
    why = f"no port speaks {wanted}: add {add}"
    findings.add(place, f"{wanted} connector", "none", Verdict.BY_HAND, f"{wanted.lower()}://HOST:{port}", why)
