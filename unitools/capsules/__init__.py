"""Capsules: how a tool's code travels as one file that can be named, signed and checked.

``pack`` makes a capsule, ``read`` opens one strictly; both need the standard library only.
:mod:`unitools.capsules.signatures` signs and
verifies, and needs the extra ``capsules`` (securesystemslib, cryptography).
"""

from __future__ import annotations

from unitools.capsules.archive import MAX_CAPSULE_BYTES, MAX_CAPSULE_FILES
from unitools.capsules.errors import CapsuleError
from unitools.capsules.layout import Capsule, compute_capsule_digest, open_capsule, pack_capsule

__all__ = [
    "MAX_CAPSULE_BYTES",
    "MAX_CAPSULE_FILES",
    "Capsule",
    "CapsuleError",
    "compute_capsule_digest",
    "open_capsule",
    "pack_capsule",
]
