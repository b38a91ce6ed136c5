"""Secrets: how a value is kept that tools need and nobody may see.

Encrypted under a key of its own, which the key store wraps; bound to its tenant and name, so that a row cannot be swapped for
another. The value is opened in one place, for a run. Facts and answers name a secret and count how often it was replaced.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import transaction

from evidence import services as evidence
from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.kinds import Kind
from evidence.leaves.tools import NamedSecret
from evidence.problems import KeyUnavailable
from kernel.database.rows import PreparedQuery
from kernel.problems import SchemaInvalid, StateUnfit
from registry.installations.setup import SECRET_NAME, declared_secrets
from registry.models import Installation, InstallationState, ModelProvider, Secret
from registry.problems import SecretInUse, UnknownSecret

if TYPE_CHECKING:
    from kernel.principal import Principal
    from unitools.manifest import Manifest

MIN_CHARACTERS = 8  # shorter ones would be found by chance in what tools answer, and can be guessed
MAX_BYTES = 16_384
MAX_SECRETS = 500
NAMED = PreparedQuery(
    lambda tenant_id, name: Secret.objects.filter(tenant_id=tenant_id, name=name), tenant_id=UUID, name=str
)


def _context(tenant_id: UUID, name: str) -> bytes:
    return tenant_id.bytes + b"\0secret\0" + name.encode()


def check_value(value: str) -> None:
    """The findings never quote it."""
    if len(value) < MIN_CHARACTERS:
        raise SchemaInvalid.at("/value", f"A secret has at least {MIN_CHARACTERS} characters.")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise SchemaInvalid.at("/value", f"A secret has at most {MAX_BYTES:,} bytes.")
    if value != value.strip():
        raise SchemaInvalid.at("/value", "The secret begins or ends with white space; is it pasted whole?")
    if any(ord(letter) < 9 or 0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise SchemaInvalid.at("/value", "The secret holds a character that is no text.")


@transaction.atomic
def set_secret(*, name: str, value: str, by: Principal) -> Secret:
    """Keep a value under a name; a value that was there is replaced for good, and counts with the next call."""
    if not SECRET_NAME.fullmatch(name):
        raise SchemaInvalid.at(
            "/name", "A name begins with a letter and has up to 80 letters, digits, dots, dashes and underscores."
        )
    check_value(value)
    data_key, nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    key_id, wrapped = get_keystore().wrap(data_key, context=by.tenant_id.bytes)
    sealed = {
        "key_id": key_id,
        "wrapped_key": wrapped,
        "nonce": nonce,
        "ciphertext": AESGCM(data_key).encrypt(nonce, value.encode(), _context(by.tenant_id, name)),
        "set_by": by.id,
    }
    if Secret.objects.filter(tenant_id=by.tenant_id).exclude(name=name).count() >= MAX_SECRETS:
        raise StateUnfit.at("/name", f"A tenant has at most {MAX_SECRETS} secrets.")
    secret, created = Secret.objects.select_for_update().get_or_create(
        tenant_id=by.tenant_id, name=name, defaults=sealed
    )
    if not created:
        for field, part in sealed.items():
            setattr(secret, field, part)
        secret.number += 1
        secret.save(update_fields=[*sealed, "number", "set_at"])
    evidence.record(
        kind=Kind.SECRET_SET, subject=secret.wire_id, actor=by, data=NamedSecret(name=name, number=secret.number)
    )
    return secret


def users_by_secret(tenant_id: UUID) -> dict[str, list[str]]:
    """The tools of the installations whose runs get each secret; nothing about secrets that no run gets."""
    rows = Installation.objects.filter(tenant_id=tenant_id).exclude(state=InstallationState.REMOVED).order_by("name")
    found: dict[str, list[str]] = {}
    for tool, mapped in rows.exclude(secrets={}).values_list("name", "secrets"):
        for name in set(mapped.values()):
            found.setdefault(name, []).append(tool)
    return found


@transaction.atomic
def remove_secret(*, name: str, by: Principal) -> None:
    """Forget a value for good. One that an installation uses stays until that says otherwise."""
    secret = Secret.objects.select_for_update().filter(tenant_id=by.tenant_id, name=name).first()
    if secret is None:
        raise UnknownSecret(f"There is no secret {name[:80]} here.")
    providers = ModelProvider.objects.filter(tenant_id=by.tenant_id, secret=name).values_list("name", flat=True)
    used = [*users_by_secret(by.tenant_id).get(name, []), *(f"the model provider {each}" for each in providers)]
    if used:
        raise SecretInUse(
            f"{name} is used by {', '.join(used[:10])}.",
            details={"installations": used},
            remedy="Take it out of the settings of these installations first, or replace its value.",
        )
    evidence.record(
        kind=Kind.SECRET_REMOVED, subject=secret.wire_id, actor=by, data=NamedSecret(name=name, number=secret.number)
    )
    secret.delete()


def open_secret(secret: Secret) -> str:
    """The value, for whoever runs a call that was accepted, or asks the server that calls send it to for its list; for nobody else."""
    data_key = get_keystore().unwrap(secret.key_id, bytes(secret.wrapped_key), context=secret.tenant_id.bytes)
    try:
        plain = AESGCM(data_key).decrypt(
            bytes(secret.nonce), bytes(secret.ciphertext), _context(secret.tenant_id, secret.name)
        )
    except InvalidTag as error:
        raise KeyUnavailable(f"The secret {secret.name} does not belong to its row, or was changed.") from error
    return plain.decode()


def open_secrets(installation: Installation, manifest: Manifest) -> dict[str, str]:
    """As :func:`open_secret`: the values of what the manifest declares, by its names."""
    wanted = {name: installation.secrets[name] for name in declared_secrets(manifest) if name in installation.secrets}
    # One prepared statement each: most tools have one secret or two, and each call of them reads it.
    found = {target: NAMED.first(tenant_id=installation.tenant_id, name=target) for target in set(wanted.values())}
    return {name: open_secret(secret) for name, target in wanted.items() if (secret := found[target]) is not None}
