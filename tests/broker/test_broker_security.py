"""A broker with users: who gets in, and where the passwords are not."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest
from proton import ConnectionException, Message
from proton.utils import BlockingConnection

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis

pytestmark = pytest.mark.xdist_group("logins")  # one worker, so that each broker is started once
Embedded = EmbeddedArtemis | EmbeddedActiveMQ
KINDS = {"artemis": EmbeddedArtemis, "classic": EmbeddedActiveMQ}
USERS = {"alice": "s3cret word", "bob = ü:#": "pä:ss\\=ENC(x) ☃"}


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> type[Embedded]:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def secured(kind: type[Embedded]) -> Iterator[Embedded]:
    with kind(users=USERS) as broker:
        yield broker


@pytest.fixture(scope="module")
def with_guests(kind: type[Embedded]) -> Iterator[Embedded]:
    with kind(users=USERS, allow_anonymous=True) as broker:
        yield broker


def log_in(broker: Embedded, user: str | None = None, password: str | None = None, mechanism: str = "PLAIN") -> None:
    """Log in and send: this broker refuses an anonymous login only after it has opened the connection."""
    connection = BlockingConnection(broker.amqp_url, timeout=10, user=user, password=password, allowed_mechs=mechanism)
    try:
        connection.create_sender("security").send(Message("x"))
    finally:
        connection.close()


@pytest.mark.parametrize("user", USERS)
def test_the_right_password_is_accepted(secured: Embedded, user: str) -> None:
    log_in(secured, user=user, password=USERS[user])


@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_a_wrong_login_is_refused(secured: Embedded, user: str) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(secured, user=user, password="wrong")


def test_an_anonymous_login_is_refused_by_default(secured: Embedded) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(secured, mechanism="ANONYMOUS")


def test_an_anonymous_login_can_be_allowed(with_guests: Embedded) -> None:
    log_in(with_guests, mechanism="ANONYMOUS")
    log_in(with_guests, user="alice", password=USERS["alice"])


def test_a_wrong_password_does_not_make_a_guest(with_guests: Embedded) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(with_guests, user="alice", password="wrong")


def test_the_logins_survive_a_restart(kind: type[Embedded]) -> None:
    with kind(users=USERS) as broker:
        broker.kill()
        broker.restart()
        log_in(broker, user="alice", password=USERS["alice"])


def test_passwords_are_neither_shown_nor_logged(secured: Embedded) -> None:
    log_in(secured, user="alice", password=USERS["alice"])
    for password in USERS.values():
        assert password not in repr(secured)
        assert password not in secured.log_path.read_text()


def test_artemis_does_not_even_keep_passwords() -> None:
    with EmbeddedArtemis(users=USERS) as broker:
        kept = [repr(vars(broker)), *(path.read_text(errors="replace") for path in (broker.data_dir / "etc").iterdir())]
    for password in USERS.values():
        assert not [text for text in kept if password in text]


def test_the_files_with_logins_are_for_their_owner_only(secured: Embedded) -> None:
    files = [path for path in (secured.data_dir / "etc").iterdir() if path.stem in {"users", "roles", "groups"}]
    assert len(files) == 2
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("users", [{"": "x"}, {"a": ""}, {"a,b": "x"}, {" a": "hidden"}])
def test_a_login_that_the_brokers_files_cannot_hold_is_refused(kind: type[Embedded], users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="users: expected a name and a password") as caught:
        kind(users=users)
    assert "hidden" not in str(caught.value)
