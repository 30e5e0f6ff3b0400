"""The command line ``pyjmsack``. Each command is a module, and uses the blocking face and ``pyjmsack.broker``."""
