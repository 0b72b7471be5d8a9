"""Deliberate faults of ours, each of which the suite must notice: the tests, tested."""
