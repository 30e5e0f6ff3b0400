"""The command line ``pyjmsack``. Each command is a module or a folder, and is built on the public interfaces."""
