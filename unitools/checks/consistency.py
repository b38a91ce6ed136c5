"""Consistency: whether the limits, secrets and version statements of a manifest fit each other."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from unitools.capabilities import Capabilities
from unitools.checks.findings import declare_rule, declare_warning, has_pointer
from unitools.deprecations import argument_path
from unitools.semver import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

MAX_MAJOR = 2_147_483_647
PATIENCE_MS = 60_000
MODEL = re.compile(r"[a-z][a-z0-9_-]*:[^\s*]+")

VERSION_INVALID = declare_rule(
    "version.invalid",
    "The version is SemVer 2.0.0 in every part.",
    "Write numbers without leading zeros, also after the hyphen.",
)
VERSION_MAJOR = declare_rule("version.major", f"The major version is at most {MAX_MAJOR:,}.", "Use a smaller number.")
SERIAL = declare_rule(
    "concurrency.contradicted",
    "A serial tool runs one call at a time.",
    "Remove limits.concurrency, or set concurrency to parallel.",
)
SCRATCH = declare_warning(
    "limits.scratch_over_memory",
    "Scratch space lies in memory, so it is smaller than limits.memory_bytes.",
    "Raise limits.memory_bytes, or lower capabilities.tmp.",
)
SILENCE = declare_warning(
    "limits.idle_over_timeout",
    "The longest silence is shorter than the time that a call may take.",
    "Lower limits.idle_ms, or leave it out.",
)
ISOLATED_OUTSIDE = declare_rule(
    "isolation.outside_sandbox",
    "A tool that asks to be isolated always runs in the sandbox.",
    "Set requires_sandbox to true, or leave isolation and isolate_by out.",
)
ISOLATED_ANYWAY = declare_warning(
    "isolation.by_agent_anyway",
    "A box that serves one call serves one agent.",
    "Leave isolate_by out; it is for the levels shared and fresh.",
)
PATIENCE = declare_warning(
    "timeout.longer_than_connections",
    f"A tool that may take longer than {PATIENCE_MS // 1000} s is async: connections between callers and hub end earlier.",
    'Set "async": true, or lower timeout_ms.',
)
SECRET_TWICE = declare_rule("secrets.duplicate", "Each secret is named once.", "Remove one of them.")
SECRET_NOWHERE = declare_warning(
    "secrets.without_network",
    "A secret is for a host, so the tool asks for a network.",
    "Add the host under capabilities.net, or drop the secret; if it is for something else, say so in its description.",
)
SECRET_OUTSIDE = declare_rule(
    "secrets.host_outside_net",
    "The hosts of a secret lie within capabilities.net.",
    "Add the host under capabilities.net, or correct it.",
)
SECRET_ANYWHERE = declare_warning(
    "secrets.hosts_unsaid",
    "With several hosts in reach, a secret says which of them it is for.",
    "Add hosts to the secret.",
)
PLATFORM_INVALID = declare_rule(
    "provider_compat.platform_invalid",
    "The platform is a range of versions.",
    "Write a range, for example >=0.1 <2.",
)
MODEL_FORM = declare_warning(
    "provider_compat.model_form",
    "A model is named provider:model, and each only once.",
    "Write for example openai:gpt-4o, as callers name it; there are no patterns.",
)
DEPRECATED_NOWHERE = declare_rule(
    "deprecations.pointer",
    "What is deprecated is there: the pointer names something in this manifest.",
    'Correct the pointer; "" is the whole tool.',
)
DEPRECATED_TWICE = declare_rule("deprecations.duplicate", "Each place is deprecated once.", "Remove one of them.")
DEPRECATED_SINCE = declare_rule(
    "deprecations.since",
    "`since` is a version, and not a later one than this.",
    "Name the version that first said so.",
)
DEPRECATED_BY_ITSELF = declare_rule(
    "deprecations.successor", "The successor is another tool.", "Name the tool to use instead."
)
SUNSET_OVER = declare_rule(
    "deprecations.sunset",
    "A sunset lies ahead when a version is registered: from that day what it names is refused.",
    "Name a later day, or remove the place and its deprecation.",
)
SUNSET_OF_NOTHING = declare_rule(
    "deprecations.sunset_of",
    "A sunset is for the whole tool or for an argument; of nothing else could a hub refuse the use.",
    'Point to "" or to /input_schema/properties/…, or leave the sunset out.',
)
SUNSET_OF_NEEDED = declare_rule(
    "deprecations.sunset_of_required",
    "An argument with a sunset is optional: from that day nobody may send it.",
    "Take it out of `required`, or leave the sunset out.",
)
NAME = declare_rule("name.of_id", "The name is the last segment of the id.", "Correct it, or leave it out.")
NO_FILES = declare_warning(
    "limits.files",
    "A tool that may make, change or remove files says how many a run may leave.",
    "Set limits.files to the most that one call leaves; nothing of what it leaves is kept otherwise.",
)


def check_version(manifest: Manifest) -> Iterator[ManifestFinding]:
    """Consents name the major version, as a number in the database."""
    try:
        Version.parse(manifest.version)
    except ValueError as error:
        yield VERSION_INVALID.at(("version",), str(error))
    if manifest.major > MAX_MAJOR:
        yield VERSION_MAJOR.at(("version",), f"The major version is larger than {MAX_MAJOR:,}.")


def check_name(manifest: Manifest) -> Iterator[ManifestFinding]:
    said = manifest.document.get("name", manifest.name)
    if said != manifest.name:
        yield NAME.at(("name",), f"{said} is not the last segment of {manifest.id}.")


def check_limits(manifest: Manifest) -> Iterator[ManifestFinding]:
    limit = manifest.document.get("limits", {}).get("concurrency", 1)
    if manifest.is_serial and limit > 1:
        yield SERIAL.at(("limits", "concurrency"), f"The tool is serial, but {limit} calls may run at a time.")
    if (scratch := manifest.capabilities.get("tmp", 0)) > manifest.limit("memory_bytes"):
        yield SCRATCH.at(("capabilities", "tmp"), f"{scratch:,} bytes of scratch space are more than the memory.")
    if (idle_ms := manifest.limit("idle_ms")) >= manifest.timeout_ms:
        yield SILENCE.at(
            ("limits", "idle_ms"), f"A call is ended after {manifest.timeout_ms:,} ms, before {idle_ms:,}."
        )
    if manifest.timeout_ms > PATIENCE_MS and not manifest.is_async:
        yield PATIENCE.at(("timeout_ms",), f"A caller would wait up to {manifest.timeout_ms // 1000} s for the answer.")


def check_isolation(manifest: Manifest) -> Iterator[ManifestFinding]:
    asks = [name for name in ("isolation", "isolate_by") if name in manifest.document]
    if asks and manifest.document.get("requires_sandbox") is False:
        yield ISOLATED_OUTSIDE.at((asks[0],), "The tool asks to be isolated, and to run outside the sandbox.")
    if manifest.isolated_by_agent and manifest.isolation in ("single", "cold"):
        message = f"With isolation {manifest.isolation} no box serves a second call, of no agent."
        yield ISOLATED_ANYWAY.at(("isolate_by",), message)


def check_secrets(manifest: Manifest) -> Iterator[ManifestFinding]:
    seen: set[str] = set()
    net = manifest.capabilities.get("net", [])
    for place, secret in enumerate(manifest.secrets):
        if secret["name"] in seen:
            yield SECRET_TWICE.at(("secrets", place, "name"), f"The secret {secret['name']} is named twice.")
        seen.add(secret["name"])
        if not net and not manifest.capabilities.get("cidr"):
            yield SECRET_NOWHERE.at(("secrets", place), f"The tool takes {secret['name']}, but has no network.")
        for index, host in enumerate(secret.get("hosts", [])):
            if not any(_reaches(entry["host"], host) for entry in net):
                yield SECRET_OUTSIDE.at(("secrets", place, "hosts", index), f"No capability of net holds {host}.")
        hosts = {entry["host"] for entry in net}
        if "hosts" not in secret and (len(hosts) > 1 or any("*" in host for host in hosts)):
            yield SECRET_ANYWHERE.at(("secrets", place), f"{secret['name']} may be sent to every host of the tool.")


def _reaches(pattern: str, host: str) -> bool:
    try:
        asked, held = ({"net": [{"host": each}]} for each in (host, pattern))
        return Capabilities.from_json(asked) <= Capabilities.from_json(held)
    except ValueError:
        return False


def check_compatibility(manifest: Manifest) -> Iterator[ManifestFinding]:
    seen: set[str] = set()
    for place, model in enumerate(manifest.models):
        if model in seen or not MODEL.fullmatch(model):
            why = "is named twice" if model in seen else "does not name a provider and a model"
            yield MODEL_FORM.at(("provider_compat", "models", place), f"{model} {why}.")
        seen.add(model)
    if manifest.platform:
        try:
            Range.parse(manifest.platform)
        except ValueError as error:
            yield PLATFORM_INVALID.at(("provider_compat", "platform"), str(error))


def check_deprecations(manifest: Manifest) -> Iterator[ManifestFinding]:
    seen: set[str] = set()
    for place, said in enumerate(manifest.deprecations):
        path = ("deprecations", place)
        if not has_pointer(manifest.document, said["pointer"]):
            yield DEPRECATED_NOWHERE.at((*path, "pointer"), f"{said['pointer']} names nothing in this manifest.")
        if said["pointer"] in seen:
            yield DEPRECATED_TWICE.at((*path, "pointer"), f"{said['pointer'] or 'The whole tool'} is deprecated twice.")
        seen.add(said["pointer"])
        try:
            later = Version.parse(said["since"]) > Version.parse(manifest.version)
        except ValueError as error:
            yield DEPRECATED_SINCE.at((*path, "since"), str(error))
        else:
            if later:
                yield DEPRECATED_SINCE.at((*path, "since"), f"{said['since']} is later than {manifest.version}.")
        if "sunset" in said:
            if said["pointer"] and argument_path(said["pointer"]) is None:
                yield SUNSET_OF_NOTHING.at((*path, "sunset"), f"Nothing could refuse {said['pointer']} from a day on.")
            elif date.fromisoformat(said["sunset"]) <= datetime.now(UTC).date():
                yield SUNSET_OVER.at((*path, "sunset"), f"{said['sunset']} has come: nobody could use it any more.")
            elif _is_required(manifest.input_schema, argument_path(said["pointer"]) or []):
                message = f"{said['pointer']} is required: from {said['sunset']} on every call would be refused."
                yield SUNSET_OF_NEEDED.at((*path, "sunset"), message)
        if said.get("successor") == manifest.id:
            yield DEPRECATED_BY_ITSELF.at((*path, "successor"), "The tool is named as its own successor.")


def _is_required(schema: Any, path: list[str]) -> bool:
    """By the object that the argument is a property of, which the pointer was found to lead to."""
    for place, name in enumerate(path, start=1):
        if not isinstance(schema, dict):
            return False
        if place == len(path):
            return name in schema.get("required", ())
        schema = schema.get("properties", {}).get(name)
    return False


def check_files(manifest: Manifest) -> Iterator[ManifestFinding]:
    leaves = any({"create", "write"} & set(rule.get("actions", ())) for rule in manifest.capabilities.get("fs", ()))
    if leaves and not manifest.limit("files"):
        yield NO_FILES.at(("limits", "files"), "The tool may make or change files, but a run may leave none.")
