"""The options of the Java clients, each with the option of this library that replaces it.

The URL parser uses this table for its hints, and ``pyjmsack migrate`` uses the table to translate options.

This library knows many options of Qpid JMS and ActiveMQ Classic by the same name. These options are rows of
``pyjmsack.uri``, and this package does not repeat them. This package has all options of the Artemis client, and the
other options of Qpid JMS and ActiveMQ Classic. The tests compare the table with the setters of the Java classes.
"""
