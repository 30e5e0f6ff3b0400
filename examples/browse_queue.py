"""Look at the messages of a queue without taking them, all of them or by a selector."""

from __future__ import annotations

import os

from pyjmsack import ConnectionFactory, TextMessage

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")


def main() -> None:
    with ConnectionFactory(URL).create_context() as context:
        queue = context.create_queue("examples.parcels")
        with context.create_producer(queue) as producer:
            for weight in (3, 12, 25):
                parcel = context.create_text_message(f"parcel of {weight} kg")
                parcel.properties["weight"] = weight
                producer.send(parcel)

        with context.create_browser(queue) as browser:
            print(f"{sum(1 for _ in browser)} parcels wait")  # each iteration starts at the head
        with context.create_browser(queue, "weight > 10") as heavy:
            for message in heavy:
                assert isinstance(message, TextMessage)
                print(f"heavy: {message.text}")

        taken = 0
        consumer = context.create_consumer(queue)
        while consumer.receive(timeout=1) is not None:
            taken += 1
        print(f"took {taken}: browsing had left them there")


if __name__ == "__main__":
    main()
