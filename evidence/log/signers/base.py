"""Checkpoint signer: what every holder of signing keys can do, wherever the keys are.

A key has a name, ``k1``, ``k2``, …, and is two Ed25519 keys: one signs texts, the other, its clock, says when; the format forbids that
one key makes both kinds of statement. The current key signs first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST = "k1"
_NUMBERED = re.compile(r"k([1-9]\d{0,8})")
_PROBE = b"toolhub: does this key sign as Ed25519?"


@dataclass(frozen=True, slots=True)
class LogPublicKey:
    """The public halves of one named key: 32 bytes each."""

    name: str
    log: bytes  # signs texts: of checkpoints and manifests
    clock: bytes  # signs the text of a checkpoint with the time


class CheckpointSigner(Protocol):
    """``place``: where the keys are, as words of a sentence. ``lost``: what to do when one is not there."""

    place: str
    lost: str

    def list_keys(self) -> list[LogPublicKey]:
        """Those that sign, the current one first. During a rotation there are two. Raises :class:`KeyUnavailable`."""

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        """An Ed25519 signature with that key, or with its clock; raises :class:`KeyUnavailable` for an unknown one."""

    def has_keys(self) -> bool:
        """Whether there is any, also one that cannot be used."""

    def make_first_key(self, name: str = FIRST) -> None:
        """Make a key where :meth:`has_keys` says that there is none."""

    def add_key(self) -> str:
        """A further key, which is the current one from now on; returns its name."""

    def forget_keys(self, names: Iterable[str]) -> None:
        """Destroy private halves, but never of the current key."""


def key_number(name: str) -> int:
    """Of ``k7`` 7, of another name 0."""
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else 0


def next_name(names: Iterable[str]) -> str:
    """The name of the key after these."""
    return f"k{max(map(key_number, names), default=0) + 1}"


def newest_first(names: Iterable[str]) -> list[str]:
    """Where nothing says which key is the current one, it is the newest."""
    return sorted(names, key=key_number, reverse=True)


def check_that_it_signs(signer: CheckpointSigner, key: LogPublicKey) -> None:
    """Raises :class:`KeyUnavailable` where signatures are not those of the public halves: a device may hash first, or mix keys up."""
    for public, clock in ((key.log, False), (key.clock, True)):
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signer.sign(_PROBE, key=key.name, clock=clock), _PROBE)
        except (InvalidSignature, ValueError) as error:
            raise KeyUnavailable(
                f"What {signer.place} signs with the key {key.name} is no Ed25519 signature of that key.",
                remedy="The keys must be Ed25519 (not Ed25519ph), and sign messages as they are given.",
            ) from error
