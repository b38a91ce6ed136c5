"""Signer: which holder of signing keys this process signs with.

TOOLHUB_SIGNER says which: ``file``, named keys in a file that only the keeper can read (:mod:`evidence.log.signers.files`);
``token``, keys that never leave a PKCS#11 token (:mod:`evidence.log.signers.tokens`); ``transit``, keys that never leave OpenBao
or Vault (:mod:`evidence.log.signers.transit`). Only the keeper has one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction

from evidence.log.signers.files import FileSigner
from evidence.models import LogKey
from evidence.problems import KeyUnavailable
from kernel.singleton import Once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidence.log.signers.base import CheckpointSigner

NOT_WHOLE = (
    "Remove what is left of the key that was being made, which has signed nothing, and try again. Beside each key is that of its "
    "clock; in a token each has a public and a private half."
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('toolhub: signing keys', 0))"


def may_sign() -> bool:
    """Whether this process is given signing keys: the keeper is, and what sets a hub up."""
    return settings.TOOLHUB_SIGNER != "file" or settings.TOOLHUB_SIGNING_KEY_FILE is not None


@contextmanager
def take_turn_at_keys() -> Iterator[None]:
    """A transaction in which no other keeper makes or publishes a key."""
    with transaction.atomic():
        if connection.vendor == "postgresql":  # on SQLite transactions take turns anyway
            with connection.cursor() as cursor:
                cursor.execute(_LOCK)
        yield


def _anything_is_signed() -> bool:
    """Before the first migration there is no table."""
    there = LogKey._meta.db_table in connection.introspection.table_names()
    return there and LogKey.objects.exists()


def make_signing_key() -> bool:
    """A first key, unless there is one; False when it was there. Never in place of keys that were lost."""
    signer = get_signer()
    with take_turn_at_keys():  # also to look: in a SoftHSM token who reads while another writes can spoil the key
        was_there = signer.has_keys()
        if not was_there and _anything_is_signed():
            raise KeyUnavailable(
                f"There is no signing key in {signer.place}, and logs were signed with one. No other was made: it would hide "
                "the loss.",
                remedy=signer.lost,
            )
        if not was_there:
            signer.make_first_key()
        if not signer.list_keys():
            raise KeyUnavailable(f"No signing key in {signer.place} is whole.", remedy=NOT_WHOLE)
    return not was_there


def choose_signer() -> CheckpointSigner:
    """The signer that the settings name; for the keeper only. Raises :class:`KeyUnavailable` where they name none."""
    match settings.TOOLHUB_SIGNER:
        case "token":
            from evidence.log.signers.tokens import TokenSigner  # noqa: PLC0415  no other process needs what it loads

            return TokenSigner(settings.TOOLHUB_SIGNING_PKCS11_URI)
        case "transit":
            from evidence.log.signers.transit import TransitSigner  # noqa: PLC0415  the same

            return TransitSigner(
                settings.TOOLHUB_SIGNING_TRANSIT_URL,
                token_file=settings.TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE,
                prefix=settings.TOOLHUB_SIGNING_TRANSIT_PREFIX,
                ca=settings.TOOLHUB_SIGNING_TRANSIT_CA,
            )
    if settings.TOOLHUB_SIGNING_KEY_FILE is None:
        raise KeyUnavailable(
            "This process has no signing keys: only the keeper signs.",
            remedy="Start `manage.py keep` with TOOLHUB_SIGNING_KEY_FILE set to a file that only it can read.",
        )
    return FileSigner(settings.TOOLHUB_SIGNING_KEY_FILE)


get_signer = Once(choose_signer)
