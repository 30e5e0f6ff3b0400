from pyjmsack import ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context() as context:
    orders = context.create_queue("tutorial.orders")
    producer = context.create_producer(orders)
    for order in ("one bicycle", "two bells", "three lamps"):
        producer.send(order)  # returns when the broker has stored the message
        print("sent:", order)
