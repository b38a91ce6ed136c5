"""Set-up: whether an installation has what its version needs, and what somebody set for it is well formed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel.canonical import compute_digest, encode_hash_input
from registry.problems import NotConfigured
from unitools import semver
from unitools.capabilities import build_allow_list_bound
from unitools.checks import compile_schema, describe_violation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from unitools.manifest import Manifest

MAX_CONFIG_BYTES = 65_536
MAX_LISTED = 50
MAX_ENTRY = 400
MAX_PIN = 120
SECRET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}")
Finding = dict[str, str]


def _finding(pointer: str, message: str) -> Finding:
    return {"pointer": pointer, "message": message}


def _step(name: str | int) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def declared_secrets(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """The secrets that the manifest names: ``{name: {description, required, …}}``."""
    return {secret["name"]: secret for secret in manifest.secrets}


def check_pin(pin: Any) -> Iterator[Finding]:
    if not isinstance(pin, str) or len(pin) > MAX_PIN:
        yield _finding("/pin", f"A pin is a version range of at most {MAX_PIN} characters.")
        return
    try:
        if pin:
            semver.Range.parse(pin)
    except ValueError as error:
        yield _finding("/pin", str(error))


def check_config(config: Any, manifest: Manifest) -> Iterator[Finding]:
    """Is the configuration what the manifest asks for?"""
    if not isinstance(config, dict):
        yield _finding("/config", "The configuration is an object.")
        return
    if len(encode_hash_input(config)[1]) > MAX_CONFIG_BYTES:
        yield _finding("/config", f"The configuration has more than {MAX_CONFIG_BYTES:,} bytes.")
        return
    schema = manifest.config_schema
    if schema is None:
        if config:
            yield _finding("/config", "This version takes no configuration; leave it empty.")
        return
    for error in list(compile_schema(schema).iter_errors(config))[:20]:
        pointer = "".join("/" + _step(part) for part in error.instance_path)
        yield _finding(f"/config{pointer}", describe_violation(error))


def _check_listed(entries: Any, name: str, what: str, bound: Callable[[list[Any]], object]) -> Iterator[Finding]:
    """None lets the manifest decide; an empty list allows nothing. Each entry is read as preflight will read it."""
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_LISTED:
        yield _finding(f"/{name}", f"It is a list of at most {MAX_LISTED} {what}.")
        return
    for place, entry in enumerate(entries):
        if not isinstance(entry, str) or len(entry) > MAX_ENTRY:
            yield _finding(f"/{name}/{place}", f"An entry is a text of at most {MAX_ENTRY} characters.")
            continue
        try:
            bound([entry])
        except ValueError as error:
            yield _finding(f"/{name}/{place}", str(error))


def check_hosts(hosts: Any) -> Iterator[Finding]:
    yield from _check_listed(
        hosts, "hosts", "hosts, address ranges and patterns", lambda each: build_allow_list_bound(each, None)
    )


def check_paths(paths: Any) -> Iterator[Finding]:
    yield from _check_listed(paths, "paths", "file trees", lambda each: build_allow_list_bound(None, each))


def check_secrets(mapping: Any, manifest: Manifest, *, present: Collection[str]) -> Iterator[Finding]:
    """Is every secret that is mapped one that the manifest names, to one that the tenant has?"""
    if not isinstance(mapping, dict):
        yield _finding("/secrets", "Secrets are an object: the manifest's name of each, and yours.")
        return
    declared = declared_secrets(manifest)
    for name, target in mapping.items():
        place = f"/secrets/{_step(name)}"
        if name not in declared:
            known = ", ".join(declared) or "none"
            yield _finding(place, f"This version names no secret {name[:80]}. It names: {known}.")
        elif not isinstance(target, str) or target not in present:
            yield _finding(place, f"There is no secret {str(target)[:80]!r} in this tenant. Set it first.")


def compute_config_digest(config: Any, manifest: Manifest) -> str:
    """The digest of a configuration that this version can run with; empty when it cannot, or takes none."""
    if manifest.config_schema is None or any(check_config(config, manifest)):
        return ""
    return compute_digest(config)


def missing_setup(
    manifest: Manifest, *, config_digest: str, secrets: dict[str, str], present: Collection[str]
) -> list[str]:
    """What an installation still lacks, as sentences; empty when it can run. Pure: preflight asks on every call."""
    lacking = []
    if manifest.config_schema is not None and not config_digest:
        lacking.append("Its configuration does not match the config_schema of this version.")
    lacking += [
        f"The secret {secret['name']} is required and not set."
        for secret in manifest.secrets
        if secret["required"] and secrets.get(secret["name"]) not in present
    ]
    return lacking


def not_configured(tool: str, lacking: list[str]) -> NotConfigured | None:
    """What a caller is told about an installation that lacks something; None when it does not."""
    if not lacking:
        return None
    return NotConfigured(
        f"{tool} cannot be called yet: {' '.join(lacking)}",
        details={"missing": lacking},
        remedy="Ask an operator of the tenant to complete the settings of this installation.",
    )
