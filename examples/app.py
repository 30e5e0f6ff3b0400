"""A service: functions that take messages, sends in the same transaction, a retry, a dead letter, a reply."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass

from pyjmsack import App, JsonConverter, Message, Retry


@dataclass
class Email:
    to: str
    text: str


@dataclass
class Receipt:
    to: str
    words: int


URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
app = App(URL, converter=JsonConverter("_type", {"hello.Email": Email, "hello.Receipt": Receipt}))
audited = threading.Event()


def report(error: Exception, message: Message) -> None:
    print(f"delivery {message.delivery_count}: {error}")


@app.listener("examples.mailbox", concurrency="1-3", retry=Retry(2, delay=0.1), on_error=report)
def receive(email: Email, message: Message) -> Receipt:
    app.sender.send("examples.audit", email)  # leaves only if this function returns
    if message.delivery_count == 1:
        raise RuntimeError("the mail server is busy")
    return Receipt(email.to, len(email.text.split()))  # answers the request


@app.listener("examples.audit")
def audit(email: Email) -> None:
    print(f"audited once: to {email.to}")
    audited.set()


def main() -> None:
    logging.disable()  # the log would tell of the first failure, too
    with app:  # a service calls app.run(), or starts with `pyjmsack run app:app`
        receipt = app.sender.request("examples.mailbox", Email("ann", "see you on Sunday"), timeout=60)
        audited.wait(60)  # before the next line, because two threads that print at a time may mix their lines
        print(f"receipt: {receipt.words} words to {receipt.to}")
        print(f"health: {app.health()['status']}")


if __name__ == "__main__":
    main()
