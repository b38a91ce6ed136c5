"""Installation: how a new hub gets its keys, its first tenant and its first owner.

`manage.py init` calls what is here. Everything comes from the environment, from files, or is generated; what is there
already stays as it is, so doing it again (after an upgrade, say) is safe.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from access.members import services as members
from access.models import Tenant
from access.roles import HUB_OWNERS, Role
from evidence.keys.check_values import ANOTHER, FOREIGN, forget_check_values, unfit_keys
from evidence.keys.key_file import LOST, make_key_file, read_key_file
from evidence.keys.keystore import get_keystore
from evidence.keys.wrapped_keys import anything_is_sealed, wrapped_with
from evidence.log.signer import get_signer, make_signing_key, may_sign
from evidence.problems import KeyUnavailable
from kernel.principal import Principal
from kernel.secret_files import read_or_make_secret
from toolhub.database.hub_role import let_hub_log_in


class CannotInitialise(Exception):
    """What is missing, in a sentence."""


@dataclass(frozen=True, slots=True)
class Owner:
    """``password`` only when it was generated just now; it is stored nowhere in clear."""

    username: str
    tenant: str
    created: bool
    password: str = ""


def secret_key_file() -> Path:
    return Path(settings.TOOLHUB_SECRET_KEY_FILE)


def make_keys() -> list[str]:
    """The session key, the signing key and the master keys, unless they are there; says what was made and what was found."""
    said = []
    if may_sign():  # elsewhere: the keeper makes its own
        made, place = make_signing_key(), get_signer().place
        said.append(
            f"A key that logs are signed with was made in {place}. Back it up."
            if made
            else f"The signing key is in {place}."
        )
    if settings.TOOLHUB_SECRET_KEY_GIVEN:
        said.append("The session key comes from TOOLHUB_SECRET_KEY.")
    else:
        file = secret_key_file()
        said.append(f"The session key is in {file}." if file.exists() else f"A session key was made in {file}.")
        settings.SECRET_KEY = read_or_make_secret(file)
    if settings.TOOLHUB_KEYSTORE != "file":
        check_that_keys_fit()
        return [*said, f"The master keys are in the key store ({settings.TOOLHUB_KEYSTORE})."]
    path = settings.TOOLHUB_KEY_FILE
    if path.exists():
        read_key_file(path)
        check_that_keys_fit()
        return [*said, f"The master keys are in {path}."]
    if anything_is_sealed():
        raise KeyUnavailable(
            f"The key file {path} is lost, and the database holds values that only its keys open. "
            "No other was made: it would hide the loss.",
            remedy=LOST,
        )
    forget_check_values()
    make_key_file(path)
    return [*said, f"A master key was made in {path}. Back it up: without it stored values are lost."]


def check_that_keys_fit() -> None:
    """Every key that wraps something is there, of a service as far as it says so; and each that is there is the database's."""
    in_file = settings.TOOLHUB_KEYSTORE == "file"
    keys = set(read_key_file(settings.TOOLHUB_KEY_FILE)[0]) if in_file else get_keystore().names()
    where = settings.TOOLHUB_KEY_FILE if in_file else "TOOLHUB_MASTER_KEYS"
    for what, names in wrapped_with().items():
        missing = sorted(names - keys) if keys is not None else []
        if missing:
            raise KeyUnavailable(
                f"The {what} of this database are wrapped with the key {missing[0]}, which is not in {where}.",
                remedy="Restore the key file that belongs to this database.",
            )
    if unfit := unfit_keys(get_keystore()):
        raise KeyUnavailable(FOREIGN.format(unfit[0]), remedy=ANOTHER)


def let_processes_log_in() -> None:
    """Where web, worker and keeper connect as the hub's own role, whoever owns the tables gives it its password."""
    if settings.TOOLHUB_HUB_ROLE_PASSWORD and connection.vendor == "postgresql":
        let_hub_log_in(connection, settings.TOOLHUB_HUB_ROLE_PASSWORD)


def wanted_password() -> str:
    """From TOOLHUB_OWNER_PASSWORD or the file that TOOLHUB_OWNER_PASSWORD_FILE names; empty: one is generated."""
    if settings.TOOLHUB_OWNER_PASSWORD:
        return str(settings.TOOLHUB_OWNER_PASSWORD)
    if settings.TOOLHUB_OWNER_PASSWORD_FILE:
        try:
            return Path(settings.TOOLHUB_OWNER_PASSWORD_FILE).read_text().strip()
        except OSError as error:
            raise CannotInitialise(f"TOOLHUB_OWNER_PASSWORD_FILE cannot be read: {error.strerror}.") from error
    return ""


def existing_owner() -> Any:
    return get_user_model().objects.filter(groups__name=HUB_OWNERS, is_active=True).order_by("pk").first()


@transaction.atomic
def make_owner() -> Owner:
    """The first person: owner of the hub and of the first tenant. With an owner there already, nothing changes."""
    there = existing_owner()
    if there is not None:
        tenant = Tenant.objects.filter(memberships__user=there).order_by("pk").first()
        return Owner(there.get_username(), tenant.name if tenant else "", created=False)
    users, username = get_user_model().objects, settings.TOOLHUB_OWNER_NAME
    if users.filter(username=username).exists():
        raise CannotInitialise(
            f"There is a person called {username} who does not own the hub. Choose another TOOLHUB_OWNER_NAME."
        )
    given = wanted_password()
    password = given or secrets.token_urlsafe(18)
    user = get_user_model()(username=username, email=settings.TOOLHUB_OWNER_EMAIL.lower())
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CannotInitialise("The owner's password is too weak. " + " ".join(error.messages)) from error
    user.set_password(password)
    user.save()
    slug, name = settings.TOOLHUB_TENANT, settings.TOOLHUB_TENANT_NAME
    tenant = Tenant.objects.filter(slug=slug).first() or members.create_tenant(slug=slug, name=name)
    setup = Principal.system("setup", tenant_id=tenant.pk)
    members.make_hub_owner(user=user, by=setup)
    members.give_membership(tenant=tenant, user=user, role=Role.OWNER, by=setup)
    return Owner(username, tenant.name, created=True, password="" if given else password)
