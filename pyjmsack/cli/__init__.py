"""The command line ``pyjmsack``: one module per command, all on the public blocking face and ``pyjmsack.broker``."""
