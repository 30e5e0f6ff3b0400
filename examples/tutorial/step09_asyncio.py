import asyncio

from pyjmsack import AckMode
from pyjmsack.aio import ConnectionFactory


async def main():
    factory = ConnectionFactory("amqp://localhost:5672")
    async with factory.create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
        bills = context.create_queue("tutorial.bills")
        producer = await context.create_producer(bills)
        await asyncio.gather(*(producer.send_async(f"bill {number}") for number in (1, 2)))

        consumer = await context.create_consumer(bills)
        async for bill in consumer:
            print("paid:", bill.text)
            bill.accept()  # not awaited: the library sends it
            if bill.text == "bill 2":
                break


asyncio.run(main())
