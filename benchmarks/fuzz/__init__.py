"""Hostile input, made from a seed: bytes of a peer, messages of a producer, URLs. They are thrown at the code that
reads
them.

``tests/unit/test_fuzz.py`` runs a short part of it, ``python -m benchmarks fuzz`` as much as there is time for.
"""
