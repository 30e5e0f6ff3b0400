"""Reads ``activemq.xml`` and ``broker.xml``: the ports, their protocols, and the settings that matter to clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from pyjmsack.java_options.schemes import JAVA_SCHEMES
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.values import HIDDEN, Missing, is_secret, resolve, shortened, shown
from pyjmsack.migrate.xml_file import Element

__all__ = ["PLAIN", "Port", "broker_of", "ports_of", "read_broker"]

_ACTIVEMQ: Final = "http://activemq.apache.org/schema/core"
_ARTEMIS: Final = ("urn:activemq", "urn:activemq:core", "urn:hornetq", "")
_ALL: Final = "CORE,AMQP,STOMP,HORNETQ,MQTT,OPENWIRE"
_NAMES: Final = ("name", "key", "id", "match")
"""The attributes whose value is a name, which may be the name of a secret."""
PLAIN: Final = "a setting of the broker; it stays where it is"
"""The reason why most settings of a broker need no change."""
_WORTH_SAYING: Final[Mapping[str, str]] = {
    "deadLetterStrategy": "names the queue of dead letters; the setting stays at the broker",
    "dead-letter-address": "names the address of dead letters; the setting stays at the broker",
    "expiry-address": "names the address of expired messages; the setting stays at the broker",
    "max-delivery-attempts": (
        "this limit holds over AMQP; over STOMP Artemis has no limit: set jms.redeliveryPolicy.maxRedeliveries"
    ),
    "redelivery-delay": "the broker waits over AMQP; over STOMP set jms.redeliveryPolicy.redeliveryDelay in the client",
    "redelivery-delay-multiplier": "see redelivery-delay",
    "max-redelivery-delay": "see redelivery-delay",
    "auto-create-queues": "with false, the broker refuses a consumer or a send if the queue does not exist",
    "auto-create-addresses": "with false, the broker refuses a send if the address does not exist",
    "default-consumer-window-size": "the setting is for core clients only; over AMQP set jms.prefetchPolicy.all",
    "schedulerSupport": "Classic needs this setting for delivery delays: write broker.scheduler=true into the URL",
    "redeliveryPlugin": "the broker waits before a redelivery: leave jms.redeliveryPolicy.* at its defaults",
    "virtualDestinations": "virtual topics are queues for consumers: create_queue('Consumer.NAME.VirtualTopic.X')",
    "security-enabled": "with true, clients need a login: username= and password= of ConnectionFactory",
    "simpleAuthenticationPlugin": "clients need a login: username= and password= of ConnectionFactory",
    "jaasAuthenticationPlugin": "clients need a login: username= and password= of ConnectionFactory",
    "authorizationPlugin": "the user needs the rights to read, write and create the destinations of the service",
    "security-settings": "the user needs the rights to consume, send and create for the destinations of the service",
    "amqp-use-core-subscription-naming": (
        "with true, AMQP and core clients share durable subscriptions; keep this setting"
    ),
    "wildcard-addresses": (
        "chooses the wildcard characters in destinations of consumers; the setting stays at the broker"
    ),
    "connection-ttl-override": "over AMQP the idle time-outs of client and broker have an effect instead",
    "page-full-policy": "if an address is full, over AMQP FAIL refuses a send and BLOCK lets the send wait",
    "address-full-policy": "if an address is full, over AMQP FAIL refuses a send and BLOCK lets the send wait",
    "constantPendingMessageLimitStrategy": (
        "no effect over AMQP; over STOMP the broker drops messages of slow subscribers because of this setting"
    ),
    "sslContext": "the TLS settings of the broker; name its certificates in transport.trustStoreLocation",
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
    """Return the ports on which a broker listens. A port that is not a number is left out."""
    kind = "transportConnector" if broker_of(root) == "classic" else "acceptor"
    return [port for element in root.all() if element.name == kind and (port := _port(element, known))]


def read_broker(findings: Findings, settings: Settings, file: str, root: Element, known: Mapping[str, str]) -> None:
    """Add a row for each setting of a broker, and a row that says whether the broker has a port for the wanted
    protocol.
    """
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
    """Return each element that has attributes or a text, or has no other elements inside."""
    return [one for one in top.all() if one.attributes or one.text.strip() or not one.children]


def _setting(findings: Findings, file: str, element: Element) -> None:
    said = _WORTH_SAYING.get(element.name, PLAIN)
    value = _shown(element)
    findings.add(Place(file, element.line), element.name, value, Verdict.BROKER, "", said)
    for name in element.attributes:
        if name in _WORTH_SAYING:
            worth = _WORTH_SAYING[name]
            value = shown(name, element.attributes[name])
            findings.add(Place(file, element.line), f"{element.name}.{name}", value, Verdict.BROKER, "", worth)


def _shown(element: Element) -> str:
    """Return the attributes and the text of an element for a row. If the element is a property that is a secret, only
    its name is shown.
    """
    values = [(name.rpartition("|")[2], value) for name, value in element.attributes.items()]
    of_secret = is_secret(element.name) or any(name in _NAMES and is_secret(value) for name, value in values)
    parts = [
        f"{name}={value if name in _NAMES and is_secret(value) else HIDDEN if of_secret else shown(name, value)}"
        for name, value in values
    ]
    text = element.text.strip()
    parts += [HIDDEN if of_secret else shown(element.name, text)] if text else []
    return shortened(" ".join(parts))


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
        why = "the port is not a number: give the value of its variable with -D NAME=VALUE"
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
