"""The clients under measurement: the ``SCENARIOS`` of a module lead from name to function."""
