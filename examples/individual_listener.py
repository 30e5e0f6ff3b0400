"""A listener that decides about each message by itself: accept it, hand it back for another try, or reject it."""

from __future__ import annotations

import os
import threading

from pyjmsack import AckMode, ConnectionFactory, Message, TextMessage

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
JOBS = ["fine", "flaky", "hopeless"]


def main() -> None:
    finished = threading.Semaphore(0)

    def on_message(message: Message) -> None:
        """Runs on the session's own thread, one message at a time."""
        assert isinstance(message, TextMessage)
        if message.text == "flaky" and message.delivery_count == 1:
            print("flaky: failed, once more")
            message.modify(delivery_failed=True)  # is delivered again, counted
            return
        if message.text == "hopeless":
            print("hopeless: rejected")
            message.reject()  # the broker moves it to its dead-letter queue
        else:
            print(f"{message.text}: done, delivery {message.delivery_count}")
            message.accept()
        finished.release()

    with ConnectionFactory(URL).create_connection() as connection:
        with connection.create_session() as session:
            producer = session.create_producer(session.create_queue("examples.jobs"))
            for job in JOBS:
                producer.send(job)

        listening = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        consumer = listening.create_consumer(listening.create_queue("examples.jobs"))
        consumer.message_listener = on_message
        connection.start()
        for _ in JOBS:
            if not finished.acquire(timeout=10):
                raise TimeoutError("a job was not finished in time")
    print("all decided")  # leaving the block closed the connection, after the listener had returned


if __name__ == "__main__":
    main()
