"""Makes a pyjmsack URL from the URL and the settings of a Java connection factory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from pyjmsack.errors import JMSException
from pyjmsack.java_options.artemis import ARTEMIS
from pyjmsack.java_options.schemes import JAVA_SCHEMES
from pyjmsack.migrate.java_url import JavaMember, JavaUrl, parse_java_url
from pyjmsack.migrate.model import Factory, Findings, Place, Settings, Unreadable, Verdict
from pyjmsack.migrate.options import belongs_to_failover, belongs_to_member, translate
from pyjmsack.migrate.values import HIDDEN, holds_secret, is_secret, shown
from pyjmsack.uri import OPTIONS, parse_url
from pyjmsack.uri.profiles import PROFILES

__all__ = ["Setting", "add_factory", "guess_client"]

_USUAL: Final = {("amqp", False): 5672, ("amqp", True): 5671, ("stomp", False): 61613, ("stomp", True): 61614}
_OPENWIRE: Final = {61616, 61617}
_STORES: Final = {
    "transport.trustStorePassword": "PYJMSACK_TRUST_STORE_PASSWORD",
    "transport.keyStorePassword": "PYJMSACK_KEY_STORE_PASSWORD",
}
_SEVERAL: Final = "the value has a secret in it: give each setting its own option, and the secret its variable"
_LONGEST_VALUE: Final = 8192
_TOO_LONG: Final = f"a value of more than {_LONGEST_VALUE} characters: set the option in the code"
PASSWORD: Final = "PYJMSACK_PASSWORD"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a Java connection factory. ``option`` is the name of the same setting in a URL."""

    place: Place
    key: str
    option: str
    value: str


@dataclass(slots=True)
class _Draft:
    """The URL options of a Java connection factory, which are collected until the new URL is complete."""

    factory: Factory
    protocol: str
    outer: dict[str, str] = field(default_factory=dict)
    """Options that hold for all brokers."""
    member: dict[str, str] = field(default_factory=dict)
    """Options of the stream (protocol, TCP and TLS) to every broker."""
    members: dict[int, dict[str, str]] = field(default_factory=dict)
    """For each broker, by its number in the URL: the options of the stream to this broker."""

    def take(self, options: Mapping[str, str], number: int = -1) -> None:
        """Add options. ``number`` is the number of the broker that the options belong to; -1 stands for all brokers."""
        for name, value in options.items():
            if name == "jms.username":
                self.factory.username = value
            elif name == "jms.password":
                self.factory.secrets[name] = PASSWORD
            elif OPTIONS[name].kind.secret:
                self.factory.secrets[name] = _STORES[name]
            elif belongs_to_member(name):
                (self.member if number < 0 else self.members.setdefault(number, {}))[name] = value
            else:
                self.outer[name] = value

    def given(self) -> set[str]:
        """Return the names of all options. The main name of an option replaces its other names."""
        names = {*self.outer, *self.member, *(name for options in self.members.values() for name in options)}
        return {OPTIONS[name].alias_of or name for name in names}


def guess_client(url: JavaUrl, otherwise: str = "activemq") -> str:
    """Guess from the schemes and the options of a URL which Java client uses the URL."""
    if any(member.scheme.startswith("amqp") for member in url.members):
        return "qpid"
    names = {name for pairs in (url.options, *(member.options for member in url.members)) for name, _ in pairs}
    if any(name.startswith(("jms.", "wireFormat.", "nested.", "socket.", "broker.")) for name in names):
        return "activemq"
    if url.composite == "list" or any(name in ARTEMIS and name not in OPTIONS for name in names):
        return "artemis"
    return "activemq" if url.composite else otherwise


def add_factory(
    findings: Findings,
    settings: Settings,
    place: Place,
    key: str,
    text: str,
    *,
    name: str = "",
    client: str = "",
    broker: str = "",
    also: Iterable[Setting] = (),
) -> Factory | None:
    """Add a connection factory and its rows.

    Args:
        key: the name of the URL in the file.
        text: the URL.
        client: the Java client of these options; empty = guess the client from the URL.
        broker: ``artemis`` or ``classic`` if the file names the broker, otherwise empty.
        also: settings of the factory outside the URL.

    Returns:
        The factory, or ``None`` if the text is not a URL or cannot be translated. In this case a row has the reason.
    """
    try:
        url = parse_java_url(text)
    except Unreadable as error:
        findings.add(place, key, HIDDEN, Verdict.BY_HAND, "", str(error))
        return None
    client = client or guess_client(url)
    broker = settings.broker or ("artemis" if client == "artemis" else broker)
    factory = Factory(name or "connection_factory", place, client, broker)
    draft = _Draft(factory, settings.protocol)
    addresses = _addresses(findings, settings, place, key, url, draft)
    for option, value in url.options:
        _add_option(findings, draft, Setting(place, f"{key}?{option}", option, value))
    for number, member in enumerate(url.members):
        for option, value in member.options:
            _add_option(findings, draft, Setting(place, f"{key}?{option}", option, value), number)
    _take_login(findings, place, key, url.members, draft)
    for setting in also:
        _add_option(findings, draft, setting)
    if not addresses:
        return None
    failover = bool(url.composite) or any(map(belongs_to_failover, draft.outer))
    _add_defaults(findings, place, draft, failover=failover)
    factory.url = _assembled(findings, place, key, draft, addresses, failover=failover)
    findings.factories.append(factory)
    return factory


def _addresses(
    findings: Findings, settings: Settings, place: Place, key: str, url: JavaUrl, draft: _Draft
) -> dict[int, str]:
    """Add a row for each broker, and return the new addresses by number."""
    addresses = {}
    names = {
        name for name, value in (*url.options, *url.members[0].options) if name == "sslEnabled" and value == "true"
    }
    for number, member in enumerate(url.members):
        scheme = JAVA_SCHEMES.get(member.scheme)
        if scheme is None or scheme.why_not or url.composite in ("discovery", "fanout"):
            known = JAVA_SCHEMES.get(url.composite) or scheme
            why = (
                f"{known.says}: {known.why_not}" if known else "no Java client knows this scheme; use amqp://host:5672"
            )
            findings.add(place, key, str(member), Verdict.REFUSED, "", why)
            continue
        tls = scheme.tls or bool(names)
        new, verdict, why = _address(settings, member, tls, scheme.websocket, draft.factory.broker)
        findings.add(place, key, str(member), verdict, new, why)
        addresses[number] = new
    return addresses


def _address(
    settings: Settings, member: JavaMember, tls: bool, websocket: bool, broker: str
) -> tuple[str, Verdict, str]:
    """Return the new address of a broker, the verdict and the reason."""
    protocol = settings.protocol
    scheme = _scheme(protocol, tls, websocket)
    speaks = member.scheme.startswith(protocol)
    port, why, sure = _port(settings, member, tls, speaks or websocket, broker)
    new = f"{scheme}://{member.host or 'localhost'}{f':{port}' if port else ''}"
    says = JAVA_SCHEMES[member.scheme].says
    if speaks and member.scheme == scheme:
        return new, Verdict.SAME if sure else Verdict.BY_HAND, why
    why = "; ".join(filter(None, (f"{member.scheme}:// is {says}, pyjmsack speaks {scheme}://", why)))
    return new, Verdict.CHANGED if sure else Verdict.BY_HAND, why


def _scheme(protocol: str, tls: bool, websocket: bool) -> str:
    if protocol == "amqp":
        return "amqp" + ("ws" if websocket else "") + ("s" if tls else "")
    if websocket:
        return "stomp+wss" if tls else "stomp+ws"
    return "stomp+ssl" if tls else "stomp"


def _port(settings: Settings, member: JavaMember, tls: bool, speaks: bool, broker: str) -> tuple[int, str, bool]:
    """Return the new port, the reason for this port, and whether the port is certain."""
    usual = _USUAL[settings.protocol, tls]
    if member.port in settings.ports:
        return settings.ports[member.port], f"port {member.port} is {settings.ports[member.port]}", True
    if speaks:
        return member.port, "", True
    if not member.port or member.port in _OPENWIRE:
        return usual, f"{usual} is the usual port of {settings.protocol.upper()}; choose another port with --port", True
    if broker == "artemis":
        speech = settings.protocol.upper()
        why = f"an acceptor of Artemis speaks every protocol, unless its 'protocols' leave out {speech}"
        return member.port, why, True
    why = f"which port of the broker speaks {settings.protocol.upper()}? Give --port {member.port}=PORT"
    return member.port, why, False


def _add_option(findings: Findings, draft: _Draft, setting: Setting, number: int = -1) -> None:
    name = setting.option.removeprefix("nested.")
    if is_secret(name) or is_secret(setting.key):
        _add_secret(findings, draft, setting, name)
        return
    too_long = len(setting.value) > _LONGEST_VALUE
    if too_long or holds_secret(setting.value):
        why = _TOO_LONG if too_long else _SEVERAL
        findings.add(setting.place, setting.key, shown(name, setting.value), Verdict.BY_HAND, "", why)
        return
    made = translate(draft.factory.client, name, setting.value, draft.protocol)
    draft.take(made.options, number)
    python = made.python()
    if "jms.username" in made.options:
        python = f"username={made.options['jms.username']!r}"
    findings.add(setting.place, setting.key, shown(name, setting.value), made.verdict, python, made.why)


def _add_secret(findings: Findings, draft: _Draft, setting: Setting, name: str) -> None:
    made = translate(draft.factory.client, name, setting.value, draft.protocol)
    known = [option for option in made.options if OPTIONS[option].kind.secret]
    if not known:
        findings.add(setting.place, setting.key, HIDDEN, made.verdict, "", made.why)
        return
    draft.take({known[0]: ""})
    variable = draft.factory.secrets[known[0]]
    why = "a secret stays out of files and URLs; set this variable"
    findings.add(setting.place, setting.key, HIDDEN, Verdict.CHANGED, f"env:{variable}", why)


def _take_login(findings: Findings, place: Place, key: str, members: Iterable[JavaMember], draft: _Draft) -> None:
    for member in members:
        if member.user:
            draft.factory.username = member.user
            why = "a login in a URL ends up in logs: give the login to ConnectionFactory"
            findings.add(place, f"{key} user", member.user, Verdict.CHANGED, f"username={member.user!r}", why)
        if member.has_password:
            draft.factory.secrets["jms.password"] = PASSWORD
            findings.add(place, f"{key} password", HIDDEN, Verdict.CHANGED, f"env:{PASSWORD}", "as above")
            break


def _add_defaults(findings: Findings, place: Place, draft: _Draft, *, failover: bool) -> None:
    """Set the profile of the Java client, and add a row for each default that the profile changes."""
    client = draft.factory.client
    given = draft.given()
    draft.outer.setdefault("profile", client)
    for name, value in PROFILES[client].items():
        if (
            name in given
            or (belongs_to_failover(name) and not failover)
            or (draft.protocol == "stomp" and name.startswith("amqp."))
        ):
            continue
        why = (
            f"this is the default of the Java client, which profile={client} sets; the default of pyjmsack is"
            f" {_text(OPTIONS[name].default)}"
        )
        findings.add(place, f"(default) {name}", value, Verdict.DEFAULT, f"profile={client}", why)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value is None else str(value)


def _assembled(
    findings: Findings, place: Place, key: str, draft: _Draft, addresses: Mapping[int, str], *, failover: bool
) -> str:
    """Return the new URL. If the URL parser of pyjmsack refuses a part, add a row with the error."""
    if failover:
        members = ",".join(
            address + _query({**draft.member, **draft.members.get(number, {})}) for number, address in addresses.items()
        )
        url = f"failover:({members}){_query(draft.outer)}"
    else:
        number, address = next(iter(addresses.items()))
        url = address + _query({**draft.outer, **draft.member, **draft.members.get(number, {})})
    try:
        parse_url(url)
    except JMSException as error:
        findings.add(place, key, "", Verdict.BY_HAND, url, " ".join(str(error).split()))
    return url


def _query(options: Mapping[str, str]) -> str:
    if not options:
        return ""
    return "?" + "&".join(f"{name}={quote(value, safe='/:[].>*,_-')}" for name, value in options.items())
