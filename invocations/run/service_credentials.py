"""Service credentials: what the gate adds to an operation of a service, and by which texts it would be given away."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from invocations.sandbox.egress.service_way import CredentialUnfit, ServiceCredential
from invocations.sandbox.problems import CredentialUnusable
from registry.secrets.encodings import find_password, list_secret_forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.manifest import Manifest

_BASIC = "basic"


def check_credentials(manifest: Manifest, secrets: Mapping[str, str]) -> None:
    """Before anything is started: can each be sent where the operation wants it, and may it be sent to this host?"""
    try:
        for each in manifest.gate_credentials:
            if each["secret"] in secrets:
                ServiceCredential.build(each, secrets[each["secret"]])
    except CredentialUnfit as error:
        raise CredentialUnusable(str(error), remedy="Set the secret anew in the tool's installation.") from error
    host = (
        urlsplit(manifest.operation["server"] if manifest.operation else (manifest.remote or {})["url"]).hostname or ""
    )
    for said in manifest.secrets:
        allowed = said.get("hosts")
        if said["name"] in secrets and allowed is not None and not any(_holds(each, host) for each in allowed):
            raise CredentialUnusable(
                f"The secret {said['name']} may not be sent to {host}: its manifest names other hosts.",
                remedy="Have a version submitted whose manifest names the operation's host under the secret's hosts.",
            )


def _holds(pattern: str, host: str) -> bool:
    return host == pattern or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def find_passwords(manifest: Manifest, secrets: Mapping[str, str]) -> dict[str, str]:
    """By the name of a secret that is a user with a password: the part that proves who is asking."""
    basic = [each["secret"] for each in manifest.gate_credentials if each.get("scheme") == _BASIC]
    found = {name: find_password(secrets[name]) for name in basic if name in secrets}
    return {name: part for name, part in found.items() if part}


def list_hidden_texts(manifest: Manifest, secrets: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By the name of each secret; of a user with a password the password by itself as well. Empty where the gate makes no request."""
    if not manifest.is_by_gate:
        return {}
    found = {name: list_secret_forms(value) for name, value in secrets.items()}
    for name, part in find_passwords(manifest, secrets).items():
        found[name] |= list_secret_forms(part)
    return {name: tuple(forms) for name, forms in found.items()}
