import threading

from pyjmsack import AckMode, ConnectionFactory

finished = threading.Semaphore(0)


def work(message):
    print("work on:", message.text)
    message.accept()
    finished.release()


with ConnectionFactory("amqp://localhost:5672").create_connection() as connection:
    session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    orders = session.create_queue("tutorial.orders")
    session.create_consumer(orders).message_listener = work  # the library calls work for each message
    connection.start()  # before this no message arrives

    with connection.create_session() as other:
        other.create_producer(orders).send("four saddles")
        other.create_producer(orders).send("five pumps")
    for _ in range(2):
        assert finished.acquire(timeout=10)
