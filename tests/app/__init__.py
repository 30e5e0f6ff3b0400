"""Services: ``pyjmsack.App`` and ``pyjmsack.aio.App``."""
