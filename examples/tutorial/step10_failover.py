from pyjmsack import ConnectionFactory
from pyjmsack.testing import Wire

with (
    Wire("amqp://localhost:5672") as wire,  # stands between the program and the broker
    ConnectionFactory(f"failover:({wire.url})").create_context() as context,
):
    orders = context.create_queue("tutorial.orders")
    producer, consumer = context.create_producer(orders), context.create_consumer(orders)
    producer.send("before the cut")

    wire.cut()  # the connection is lost, and nobody can connect
    confirmed = producer.send_async("during the cut")
    print("confirmed during the cut:", confirmed.done())

    wire.heal()  # the library finds the broker again, and sends the message
    confirmed.result(timeout=30)
    print("received:", consumer.receive_body(str, timeout=30))
    print("received:", consumer.receive_body(str, timeout=30))
