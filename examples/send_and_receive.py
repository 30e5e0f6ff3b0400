"""Send a few messages and receive them, blocking. In CLIENT mode one call acknowledges them all."""

from __future__ import annotations

import os

from pyjmsack import AckMode, ConnectionFactory, TextMessage

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")


def main() -> None:
    with ConnectionFactory(URL).create_connection() as connection:
        connection.start()
        with connection.create_session(AckMode.CLIENT_ACKNOWLEDGE) as session:
            queue = session.create_queue("examples.orders")

            with session.create_producer(queue) as producer:
                for number in range(3):
                    order = session.create_text_message(f"order {number}")
                    order.properties["region"] = "EU" if number % 2 == 0 else "US"
                    producer.send(order, priority=7, time_to_live=60)  # returns when the broker has it

            consumer = session.create_consumer(queue)
            last = None
            while (message := consumer.receive(timeout=1)) is not None:
                assert isinstance(message, TextMessage)
                print(f"received {message.text!r} for {message.get_string_property('region')}")
                last = message
            if last is not None:
                last.acknowledge()  # this message and all others that the session delivered
            print(f"acknowledged {consumer.stats.acknowledged}")


if __name__ == "__main__":
    main()
