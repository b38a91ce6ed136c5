"""Witnesses: who outside sees that the hub rewrites nothing.

The hub's keeper shows each new checkpoint of the global log to witnesses (:mod:`~evidence.witnesses.client`), and puts it into a
file or a repository (:mod:`~evidence.witnesses.anchor_stores`). The witness itself (:mod:`~evidence.witnesses.witness`) is a
program for
another host and another operator: it has a key of its own, one small file, and nothing of the hub.
"""
