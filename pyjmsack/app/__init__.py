"""Services: functions that take the messages of a destination. Programs use ``pyjmsack.App`` and ``pyjmsack.aio.App``.

=================  ====================================================================================
file               what is in it
=================  ====================================================================================
``listener.py``    the checked arguments of ``@app.listener``; one call in a test
``arguments.py``   the values of a listener's parameters, by their annotations
``converters.py``  bodies become messages of JSON, and messages become bodies
``typed.py``       values of JSON become dataclasses, pydantic models and other annotated types
``names.py``       the names of fields in camelCase
``retry.py``       how often a failed message is delivered again, and what happens after the last time
``link.py``        one connection, and a new connection after a loss
``container.py``   the workers of one listener: how many run, and how they end
``worker.py``      one worker: it calls the listener for each message, sends the answer and commits
``running.py``     the listeners that take messages now; start and stop of one listener
``schedule.py``    functions that run every so many seconds
``checks.py``      functions that take part in the health of an app
``answer.py``      an answer with its own properties, destination, time to live or delivery delay
``joining.py``     the transaction that a send joins
``sender.py``      sends and requests from anywhere, and inside the transaction of a listener
``description.py`` the settings of a listener, and facts about its messages, as text
``service.py``     an app: its listeners, start, stop, health
``trial.py``       the broker to which ``app.test()`` connects
``steps.py``       how the parts above wait, in a form that both faces can run
``blocking.py``    the blocking face, with threads
``tasks.py``       the face for asyncio, with tasks
=================  ====================================================================================

Each part is a generator that yields calls (``steps.py``). Therefore the blocking face and the asyncio face run the same
code.
"""
