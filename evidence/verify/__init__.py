"""Verifier: how somebody who does not trust the hub checks its evidence.

Nothing in here knows the hub or Django: the standard library and `cryptography` are all it needs, and imports are relative,
since the same files are also the package `toolhub_verify` (packaging/toolhub-verify). The formats are public ones: RFC 9162
trees, C2SP signed notes, checkpoints, tiles and tlog-proofs, DSSE and in-toto.
"""
