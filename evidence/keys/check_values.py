"""Check values: whether a master key is the one that this database was written with.

Keys are called k1, k2, … in every hub, so a name says nothing: with another hub's key file nothing stored can be opened, and
what is stored from then on is lost with that file. Of each key the database keeps a hash of what is derived from it, from which
nobody gets the key back. A key that has none yet gets it when it opens something that is wrapped with its name; one that wraps
nothing, when another key of the same store fits. A new hub takes the first key that it is given.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.db import connection
from django.utils import timezone

from evidence.keys.wrapped_keys import SEALED, wrapped_with
from evidence.models import MasterKey
from evidence.problems import KeyUnavailable
from kernel.database.tenancy import hub_wide

if TYPE_CHECKING:
    from evidence.keys.keystore import KeyStore

PURPOSE = b"check value"
FOREIGN = "The master key {} is not the one that this database was written with."
ANOTHER = (
    "Restore the key file that belongs to this database from its backup, or let the hub use the database of its keys."
)


def check_value(store: KeyStore, key_id: str = "") -> tuple[str, str]:
    """The name and the check value of a key, or of the one in use."""
    store = store.store if isinstance(store, CheckedKeyStore) else store
    name, key = store.derive(PURPOSE, key_id)
    return name, f"sha256:{hashlib.sha256(key).hexdigest()}"


def check_key_fits(store: KeyStore, key_id: str) -> None:
    """Raises :class:`KeyUnavailable` for a key of the right name that is another one."""
    if not key_fits(store, key_id):
        raise KeyUnavailable(FOREIGN.format(key_id), remedy=ANOTHER)


def key_fits(store: KeyStore, key_id: str) -> bool:
    """Whether the key is the database's. The first time that it shows to be, its check value is written down."""
    _, value = check_value(store, key_id)
    with hub_wide():
        kept = MasterKey.objects.filter(pk=key_id).first()
        if kept is None and _belongs(store, key_id):
            row = MasterKey(key_id=key_id, check_value=value, added_at=timezone.now())
            MasterKey.objects.bulk_create([row], ignore_conflicts=True)  # of two that come at once the first counts
            kept = MasterKey.objects.get(pk=key_id)
        return kept is not None and kept.check_value == value


def _belongs(store: KeyStore, key_id: str) -> bool:
    in_use = set().union(*wrapped_with().values())
    if key_id in in_use:
        return _opens_something(store, key_id)
    others = in_use | set(MasterKey.objects.values_list("key_id", flat=True))
    return not others or any(_has(store, other) and key_fits(store, other) for other in sorted(others))


def _has(store: KeyStore, key_id: str) -> bool:
    try:
        check_value(store, key_id)
    except KeyUnavailable:
        return False
    return True


def _opens_something(store: KeyStore, key_id: str) -> bool:
    """One row of each kind is tried: a single one may have been changed."""
    for sealed in SEALED:
        row = sealed.rows().filter(**{sealed.key_id: key_id}).first()
        if row is not None:
            try:
                store.unwrap(key_id, bytes(getattr(row, sealed.wrapped)), context=row.tenant_id.bytes)
            except KeyUnavailable:
                continue
            return True
    return False


def unfit_keys(store: KeyStore) -> list[str]:
    """Names of the keys of the store that are not the database's; none before the first migration."""
    if MasterKey._meta.db_table not in connection.introspection.table_names():
        return []
    names = store.names()
    if names is None:  # a service does not say which it has
        in_use = set().union(*wrapped_with().values())
        names = {check_value(store)[0], *(name for name in in_use if _has(store, name))}
    return [name for name in sorted(names) if not key_fits(store, name)]


def forget_check_values() -> None:
    """When the keys are gone and nothing was stored under them: the hub begins anew."""
    if MasterKey._meta.db_table in connection.introspection.table_names():
        MasterKey.objects.all().delete()


class CheckedKeyStore:
    """A key store whose keys are held against their check values before anything is wrapped, hashed or signed with them.

    A key is held against the database once; after that against what was found then, so a file that is changed under a running
    process is noticed, too. What is unwrapped proves by itself that the key fits.
    """

    def __init__(self, store: KeyStore) -> None:
        self.store = store
        self._known: dict[str, str] = {}

    def _check(self, key_id: str) -> None:
        _, value = check_value(self.store, key_id)
        if self._known.get(key_id) != value:
            check_key_fits(self.store, key_id)
            self._known[key_id] = value

    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        key_id, wrapped = self.store.wrap(data_key, context=context)
        self._check(key_id)
        return key_id, wrapped

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        return self.store.unwrap(key_id, wrapped, context=context)

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        self._check(self.store.first())
        return self.store.fingerprint(value, context=context)

    def first(self) -> str:
        return self.store.first()

    def derive(self, purpose: bytes, key_id: str = "") -> tuple[str, bytes]:
        name, key = self.store.derive(purpose, key_id)
        self._check(name)
        return name, key

    def names(self) -> set[str] | None:
        return self.store.names()
