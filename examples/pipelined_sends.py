"""Send without waiting for each answer, and still know of every message whether the broker has it."""

from __future__ import annotations

import os
from concurrent.futures import Future

from pyjmsack import ConnectionFactory

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
COUNT = 5000


def main() -> None:
    with ConnectionFactory(URL).create_context() as context:
        queue = context.create_queue("examples.readings")
        sent: list[tuple[int, Future[None]]] = []
        with context.create_producer(queue) as producer:
            for number in range(COUNT):
                # returns at once; with 4096 messages unconfirmed it waits for room
                sent.append((number, producer.send_async(f"reading {number}")))
        # closing the producer waited for the answers
        failed = []
        for number, future in sent:
            error = future.exception()  # the error that send() would have raised
            if error is not None:
                failed.append(number)
                print(f"reading {number} may not be stored: {error}")
        print(f"{COUNT - len(failed)} of {COUNT} confirmed")

        received = 0
        with context.create_consumer(queue) as consumer:
            while consumer.receive(timeout=1) is not None:
                received += 1
        print(f"received {received}")


if __name__ == "__main__":
    main()
