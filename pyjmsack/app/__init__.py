"""Services: functions that take the messages of a destination. ``pyjmsack.App`` and ``pyjmsack.aio.App`` are the doors.

=================  ====================================================================================
file               what it has
=================  ====================================================================================
``listener.py``    what ``@app.listener`` was given, checked; one call in a test
``arguments.py``   what a listener's parameters get, by their annotations
``converters.py``  bodies to messages and back: JSON
``typed.py``       values of JSON to dataclasses, pydantic models and the types of annotations
``retry.py``       how often a failed message comes again, and what becomes of it then
``link.py``        one connection that is made again when it is lost
``container.py``   the workers of one listener: how many, and their end
``worker.py``      one message after the other: call, answer, commit
``joining.py``     which transaction a send joins
``sender.py``      sends and requests from anywhere, and inside the transaction of a listener
``description.py`` a listener in words
``service.py``     an app: its listeners, start, stop, health
``trial.py``       the broker of a test
``steps.py``       how the parts above wait: in both faces
``blocking.py``    the face with threads
``tasks.py``       the face of asyncio
=================  ====================================================================================

The parts are generators of calls (``steps.py``), so that both faces run one text.
"""
