"""``python -m pyjmsack``: the command line."""

from pyjmsack.cli.main import main

if __name__ == "__main__":
    main()
