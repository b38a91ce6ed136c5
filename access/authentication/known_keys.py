"""Known keys: whose the keys are that this process has found good, so that more can be asked together with one of them.

A hint and no more. With each request the key itself is read anew, and all that could be against it is looked at as if nothing were
known: what was asked beside it is thrown away unless it turns out to be whose it was thought to be. Kept are digests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from access.agents.api_keys import compute_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from kernel.database.prepared_statements import Parameters
    from kernel.principal import Principal

MAX_KNOWN = 4096


class KeyHolder(NamedTuple):
    """Whose a key is."""

    tenant_id: UUID
    agent_id: UUID
    key_id: UUID


class ReadAhead(Protocol):
    """What is asked for the holder of a key, together with the key."""

    def prepare(self, holder: KeyHolder) -> Sequence[tuple[bytes, Parameters]]:
        """The statements, none of which writes or locks."""

    def take(self, holder: KeyHolder, found: Sequence[list[tuple[object, ...]]]) -> None:
        """The rows of each. Whether the key is good, and whose, is not known yet."""


_known: dict[bytes, KeyHolder] = {}


def find_known_holder(text: str) -> KeyHolder | None:
    return _known.get(compute_digest(text))


def remember_holder(text: str, by: Principal) -> None:
    """Of a key that was found good."""
    digest = compute_digest(text)
    if by.key_id is None or digest in _known:
        return
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known[digest] = KeyHolder(by.tenant_id, by.agent(), by.key_id)
