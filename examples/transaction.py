"""Move messages from one queue to another: receiving and sending take effect together, or not at all."""

from __future__ import annotations

import os

from pyjmsack import AckMode, ConnectionFactory, TextMessage, TransactionRolledBackException

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")


def main() -> None:
    with ConnectionFactory(URL).create_connection() as connection:
        connection.start()
        with connection.create_session(AckMode.SESSION_TRANSACTED) as session:
            source = session.create_queue("examples.inbox")
            producer = session.create_producer(session.create_queue("examples.archive"))
            with session.create_producer(source) as filler:
                for number in range(3):
                    filler.send(f"letter {number}")  # in a transaction a send does not wait
            session.commit()

            consumer = session.create_consumer(source)
            tries = moved = 0
            while (message := consumer.receive(timeout=1)) is not None:
                assert isinstance(message, TextMessage)
                tries += 1
                producer.send(f"archived {message.text}")
                if message.text == "letter 1" and not message.redelivered:
                    print("letter 1: something went wrong, rolling back")
                    session.rollback()  # the copy was never sent, and the letter is delivered again
                    continue
                try:
                    session.commit()
                except TransactionRolledBackException as error:
                    print(f"not committed: {error}")  # the letter is delivered again
                    continue
                moved += 1
                print(f"{message.text}: moved, delivery {message.delivery_count}")
            print(f"moved {moved} in {tries} tries")

        with connection.create_session() as reading:  # AUTO: a message that receive() returns is acknowledged
            archive = reading.create_consumer(reading.create_queue("examples.archive"))
            while (copy := archive.receive_body(str, timeout=1)) is not None:
                print(copy)


if __name__ == "__main__":
    main()
