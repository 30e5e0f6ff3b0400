from pyjmsack import AckMode, ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
    consumer = context.create_consumer(context.create_queue("tutorial.orders"))
    done = False
    while not done:
        message = consumer.receive(timeout=5)
        print("delivery", message.delivery_count, "of", message.text)
        try:
            if message.delivery_count < 3:
                raise ConnectionError("the warehouse does not answer")
        except ConnectionError as error:
            print("failed:", error)
            message.modify(delivery_failed=True)  # give the message back, and count the attempt
        else:
            message.accept()
            done = True
print("done")
