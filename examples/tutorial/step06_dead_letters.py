from pyjmsack import AckMode, ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
    orders = context.create_queue("tutorial.orders")
    context.create_producer(orders).send("a bicycle with square wheels")

    message = context.create_consumer(orders).receive(timeout=5)
    message.reject()  # nobody can do this work: another attempt would not help
    print("rejected:", message.text)

    # the name of this queue is a setting of the broker; the selector takes the letters of our queue only
    dead_letters = context.create_queue("DLQ")
    letter = context.create_consumer(dead_letters, "_AMQ_ORIG_QUEUE = 'tutorial.orders'").receive(timeout=5)
    print("dead letter:", letter.text)
    letter.accept()
