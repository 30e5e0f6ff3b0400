"""Ask a service and wait for its answer; the service answers inside a transaction."""

from __future__ import annotations

import os
import threading

from pyjmsack import AckMode, ConnectionFactory, RequestTimedOutException, TransactionRolledBackException

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
LIMIT = {"jms.redeliveryPolicy.maxRedeliveries": 2}  # afterwards a request that cannot be answered is a dead letter
QUEUE = "examples.prices"
PRICES = {"bolt": "0.10", "nut": "0.05"}


def serve(stop: threading.Event) -> None:
    """Answer until stopped: request and reply take effect together."""
    with ConnectionFactory(URL, options=LIMIT).create_context(AckMode.SESSION_TRANSACTED) as context:
        requests = context.create_consumer(context.create_queue(QUEUE))
        producer = context.create_producer()  # without a destination, because each request names its own
        while not stop.is_set():
            request = requests.receive(timeout=0.1)
            if request is not None:
                price = PRICES.get(request.get_body(str))
                if price is not None:  # any other request gets no answer
                    producer.reply(request, price)
                try:
                    context.commit()
                except TransactionRolledBackException as error:
                    # ActiveMQ Classic refuses the reply to a requester that has left, because its queue is gone; the
                    # request comes again, and the others must be answered
                    print(f"rolled back: {error}")


def main() -> None:
    stop = threading.Event()
    service = threading.Thread(target=serve, args=(stop,))
    service.start()
    try:
        with (
            ConnectionFactory(URL).create_context() as context,
            context.create_requestor(context.create_queue(QUEUE)) as requestor,
        ):
            for item in ("bolt", "nut", "washer"):
                try:
                    reply = requestor.request(item, timeout=10 if item in PRICES else 0.5)
                except RequestTimedOutException:
                    print(f"{item}: no answer")
                else:
                    print(f"{item}: {reply.get_body(str)}")
    finally:
        stop.set()
        service.join()


if __name__ == "__main__":
    main()
