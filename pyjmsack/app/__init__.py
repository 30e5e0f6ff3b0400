"""Services: functions that take the messages of a destination. Programs use ``pyjmsack.App`` and ``pyjmsack.aio.App``.

=================  ====================================================================================
file               what is in it
=================  ====================================================================================
``listener.py``    the checked arguments of ``@app.listener``; one call in a test
``arguments.py``   the values of a listener's parameters, by their annotations
``converters.py``  bodies to messages and back: JSON
``typed.py``       values of JSON to dataclasses, pydantic models and the types of annotations
``names.py``       the names of fields in camelCase
``retry.py``       how often a failed message is delivered again, and its fate after the last time
``link.py``        one connection that is made again when it is lost
``container.py``   the workers of one listener: how many run, and how they end
``worker.py``      one worker: it calls the listener for each message, sends the answer and commits
``running.py``     the listeners that take messages now; start and stop of one
``schedule.py``    functions that run every so many seconds
``checks.py``      functions that take part in the health of an app
``answer.py``      an answer with properties, a destination or times of its own
``joining.py``     the transaction that a send joins
``sender.py``      sends and requests from anywhere, and inside the transaction of a listener
``description.py`` a listener in words
``service.py``     an app: its listeners, start, stop, health
``trial.py``       the broker to which ``app.test()`` connects
``steps.py``       how the parts above wait, in a form that both faces can run
``blocking.py``    the blocking face, with threads
``tasks.py``       the face for asyncio, with tasks
=================  ====================================================================================

The parts are generators of calls (``steps.py``), so that both faces run the same code.
"""
