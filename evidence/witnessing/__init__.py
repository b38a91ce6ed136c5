"""Who outside sees that the hub rewrites nothing?

The hub's keeper shows each new checkpoint of the global log to witnesses (:mod:`~evidence.witnessing.asking`), and puts it into a
file or a repository (:mod:`~evidence.witnessing.keeping`). The witness itself (:mod:`~evidence.witnessing.witness`) is a program for
another host and another operator: it has a key of its own, one small file, and nothing of the hub.
"""
