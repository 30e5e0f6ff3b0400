"""The replacements of Java clients' options: one table for the hints of the URL parser and for ``pyjmsack migrate``.

Options of Qpid JMS and ActiveMQ Classic that this library knows by the same name are rows of ``pyjmsack.uri``, and not
repeated here. This package has the rest: every option of the Artemis client, and the other options of the other two
clients. The tests compare it with the setters of the clients' own classes.
"""
