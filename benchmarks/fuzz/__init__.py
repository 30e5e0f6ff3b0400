"""Hostile input, made from a seed: what a peer, a producer or a URL may hold, thrown at the parts that read it.

``tests/unit/test_fuzz.py`` runs a short part of it, ``python -m benchmarks fuzz`` as much as there is time for.
"""
