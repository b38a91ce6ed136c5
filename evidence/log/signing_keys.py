"""Signing keys: with which keys a log may be signed, and who knows of it.

The public halves stay in the database for ever, so that old checkpoints can be verified. That a key was added or retired is a fact
in every log: who trusts the old key finds the new one in a log that the old one signed.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.hub import SigningKey
from evidence.log.origins import new_origin
from evidence.log.signer import NOT_WHOLE, get_signer, take_turn_at_keys
from evidence.log.signers.base import next_name
from evidence.models import GLOBAL_LOG, Log, LogKey
from evidence.problems import KeyUnavailable
from evidence.verify.notes import COSIGNATURE, ED25519, VerifierKey, clock_name
from kernel.database.tenancy import NO_TENANT
from kernel.principal import Principal

if TYPE_CHECKING:
    from evidence.log.signers.base import LogPublicKey


def list_vkeys(origin: str) -> list[str]:
    """The vkeys of a log, of retired keys too: those that sign its text, and the clocks that say when."""
    rows = list(LogKey.objects.order_by("added_at", "name"))
    texts = [str(VerifierKey(origin, ED25519, bytes(row.public))) for row in rows]
    return texts + [str(VerifierKey(clock_name(origin), COSIGNATURE, bytes(row.clock))) for row in rows]


def check_signing_keys() -> tuple[list[LogPublicKey], dict[str, LogKey]]:
    """The keys that the signer has, and those that are published.

    Raises :class:`KeyUnavailable` when a key that has signed is not there, or is another one: who goes on with a new key as if
    nothing had happened would hide that a key was lost.
    """
    signer = get_signer()
    given = signer.list_keys()
    known = {row.name: row for row in LogKey.objects.all()}
    for name, row in known.items():
        if row.retired_at is None and all(key.name != name for key in given):
            raise KeyUnavailable(
                f"Logs are signed with the key {name}, which is not in {signer.place}.", remedy=signer.lost
            )
    for key in given:
        if key.name in known and (bytes(known[key.name].public), bytes(known[key.name].clock)) != (key.log, key.clock):
            raise KeyUnavailable(
                f"The signing key {key.name} is not the one that has signed so far.", remedy=signer.lost
            )
    return given, known


def signing_keys() -> list[LogPublicKey]:
    """Those of the published keys that sign now, the current one first."""
    given, known = check_signing_keys()
    return [key for key in given if key.name in known and known[key.name].retired_at is None]


def vkeys_to_hand_out() -> list[tuple[str, str]]:
    """Of each log that somebody may verify the current key, which signs its text, and its clock. The hub's own logs come first."""
    current, known = signing_keys()[0], dict(Log.objects.order_by("pk").values_list("pk", "origin"))
    own = [known.pop(log, new_origin(log)) for log in (GLOBAL_LOG, NO_TENANT)]
    return [
        (
            str(VerifierKey(origin, ED25519, current.log)),
            str(VerifierKey(clock_name(origin), COSIGNATURE, current.clock)),
        )
        for origin in [*own, *known.values()]
    ]


def register_keys() -> list[LogPublicKey]:
    """The keys that sign now, the current one first. A new one is published, and becomes a fact, before it signs anything. Raises
    :class:`KeyUnavailable` where none is left: nothing is published unsigned.
    """
    given, known = check_signing_keys()
    for key in given:
        if key.name not in known:
            _add(key)
    keys = signing_keys()
    if not keys:
        signer = get_signer()
        raise KeyUnavailable(f"No key in {signer.place} signs: those that did are retired.", remedy=signer.lost)
    return keys


def _add(key: LogPublicKey) -> None:
    with take_turn_at_keys():
        if LogKey.objects.filter(pk=key.name).exists():
            return  # another keeper was first
        row = LogKey(name=key.name, public=key.log, clock=key.clock, added_at=timezone.now())
        row.save(force_insert=True)
        _tell(Kind.LOG_KEY_ADDED, row)


def _tell(kind: Kind, row: LogKey) -> None:
    """The hub's own log, and each tenant's that there is."""
    logs = Log.objects.exclude(pk__in=[GLOBAL_LOG, NO_TENANT]).order_by("pk").values_list("pk", flat=True)
    for tenant_id in [NO_TENANT, *logs]:
        evidence.record(
            kind=kind,
            subject=f"hub:log_key:{row.name}",
            actor=Principal.system("keeper", tenant_id=tenant_id),
            data=SigningKey(
                key=row.name,
                log=base64.b64encode(bytes(row.public)).decode(),
                clock=base64.b64encode(bytes(row.clock)).decode(),
            ),
        )


def rotate_key() -> str:
    """A further key, which signs first from now on; the others sign too, until they are retired. Returns its name."""
    register_keys()  # what is there must fit before something is added
    signer = get_signer()
    name = signer.add_key()
    if all(key.name != name for key in register_keys()):
        raise KeyUnavailable(f"The signing key {name} that was made in {signer.place} is not whole.", remedy=NOT_WHOLE)
    return name


def retire_old_keys() -> list[str]:
    """End the keys but the current one, and destroy their private halves. What they have signed stays valid."""
    _retire([key.name for key in register_keys()[1:]])
    given, known = check_signing_keys()
    old = [
        key.name for key in given if key.name in known and known[key.name].retired_at is not None
    ]  # also of an earlier try
    get_signer().forget_keys(old)
    return old


def replace_lost_keys() -> str:
    """Begin with a new key because the old ones are lost for good. It shows: no old key signs the log with the fact of the new."""
    signer = get_signer()
    known = {row.name: row for row in LogKey.objects.all()}
    with take_turn_at_keys():
        given = signer.list_keys() if signer.has_keys() else []
        if found := [key.name for key in given if key.name in known]:
            raise KeyUnavailable(
                f"Signing keys are in {signer.place}: {', '.join(found)}.",
                remedy="Type `manage.py rotate_log_key` to rotate; nothing is lost. Or take away what is not the key of that name.",
            )
        if not given:  # else an earlier try has made it, and came no further
            signer.make_first_key(next_name(known))
            if not signer.list_keys():
                raise KeyUnavailable(f"No signing key in {signer.place} is whole.", remedy=NOT_WHOLE)
        _retire(list(known))
    return register_keys()[0].name


@transaction.atomic
def _retire(names: list[str]) -> None:
    rows = LogKey.objects.filter(pk__in=names, retired_at=None)
    if connection.features.has_select_for_update:
        rows = rows.select_for_update()
    for row in rows:
        row.retired_at = timezone.now()
        row.save(update_fields=["retired_at"])
        _tell(Kind.LOG_KEY_RETIRED, row)
