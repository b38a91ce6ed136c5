"""Integrity: whether the log still says what it said.

The verifier (:mod:`~evidence.integrity.verifier`, a loop of the keeper) walks each log from its first leaf to its last and then
follows it, reading the stored bytes again: a change that went past every wall is found, and told of
(:mod:`~evidence.integrity.alarms`).
"""
