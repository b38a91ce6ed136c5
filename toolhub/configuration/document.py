"""Configuration document: what a configuration file says, in one form.

A file is read into :class:`ConfigurationEntry` objects by section. What names the same thing is written in the same way
afterwards, whatever
the file's way of writing it, so that two documents can be compared by their values alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from access.policies.language import validate_policy
from kernel.canonical import compute_digest
from llm.prices import DOLLAR
from registry.model_providers.manifests import USUAL
from toolhub.configuration.findings import build_finding, escape_pointer_step, raise_findings
from toolhub.configuration.normal_form import normalize_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolhub.configuration.findings import Finding

FORMAT = 1
EVERY_AGENT = "*"
SCHEMA = Path(__file__).with_name("document.schema.json")


@dataclass(frozen=True, slots=True)
class ConfigurationSection:
    """One list of a file. ``identity``: the fields that say which thing is meant; ``fields``: what can differ about it."""

    name: str
    identity: tuple[str, ...]
    fields: tuple[str, ...]
    defaults: dict[str, Any] = field(default_factory=dict)
    whole: bool = False  # an entry says everything: what it leaves out has its default
    many: bool = False  # several things may have the same identity
    silent: frozenset[str] = frozenset()  # fields whose difference alone changes nothing
    one: bool = False  # it is one thing and no list: nothing of it can be left out of a file and stay


POLICY, PREFIX, PRICES = "policy", "model_prefix", "model_prices"
SECTIONS: dict[str, ConfigurationSection] = {
    section.name: section
    for section in (
        ConfigurationSection("agents", ("name",), ("disabled",), {"disabled": False}),
        ConfigurationSection(
            "installations",
            ("tool",),
            ("publisher", "pin", "config", "hosts", "paths", "secrets", "state"),
            {"pin": "", "config": {}, "hosts": None, "paths": None, "secrets": {}, "state": "enabled"},
        ),
        ConfigurationSection(
            "model_providers",
            ("name",),
            ("kind", "address", "secret", "settings", "data_classes", "state"),
            {"address": "", "secret": "", "settings": {}, "data_classes": [], "state": "enabled"},
        ),
        ConfigurationSection(
            "models", ("provider", "alias"), ("model", *USUAL, "state"), {**USUAL, "state": "enabled"}
        ),
        ConfigurationSection(PREFIX, (), ("text",), one=True),
        ConfigurationSection(
            PRICES,
            (),
            ("currency", "rates", "prices"),
            {"currency": DOLLAR, "rates": [], "prices": []},
            whole=True,
            one=True,
        ),
        ConfigurationSection(
            "grants",
            ("agent", "tools"),
            ("capabilities", "scopes", "conditions", "limits", "expires_at", "may_delegate", "reason"),
            {
                "capabilities": None,
                "scopes": None,
                "conditions": [],
                "limits": [],
                "expires_at": None,
                "may_delegate": 0,
            },
            whole=True,
            many=True,
            silent=frozenset({"reason"}),
        ),
        ConfigurationSection(
            "budgets", ("scope", "agent", "tool", "dimension", "window_s"), ("amount", "reason"), {"reason": ""}
        ),
        ConfigurationSection("issuers", ("issuer",), ("audience", "jwks_url", "jwks"), {"jwks_url": "", "jwks": None}),
        ConfigurationSection("identities", ("issuer", "subject"), ("agent", "scopes")),
        ConfigurationSection("notifications", ("channel", "target"), ("events",), many=True),
        ConfigurationSection(POLICY, (), ("document",), one=True),
        ConfigurationSection("members", ("user",), ("roles", "exceptions"), {"exceptions": []}),
    )
}
PRUNABLE = tuple(name for name, section in SECTIONS.items() if not section.one)


@dataclass(frozen=True, slots=True)
class ConfigurationEntry:
    """One thing that a file or the database holds. ``pointer`` leads into the file, ``ref`` to the row."""

    section: str
    identity: tuple[Any, ...]
    fields: dict[str, Any]
    pointer: str = ""
    ref: Any = None

    @property
    def named(self) -> dict[str, Any]:
        return dict(zip(SECTIONS[self.section].identity, self.identity, strict=True))

    def get(self, name: str) -> Any:
        """A field, or what it is when nobody says."""
        return self.fields.get(name, SECTIONS[self.section].defaults.get(name))

    def to_json(self) -> dict[str, Any]:
        """As it is written in a file."""
        said = {name: value for name, value in self.named.items() if value != "" and value is not None}
        known = ((name, self.fields[name]) for name in SECTIONS[self.section].fields if name in self.fields)
        return said | {name: value for name, value in known if not (name == "jwks_url" and not value)}


Entries = dict[str, list[ConfigurationEntry]]


@dataclass(frozen=True, slots=True)
class ConfigurationDocument:
    """A file that can be read. ``entries`` has the sections that it has."""

    tenant: str
    entries: Entries
    prune: frozenset[str]
    digest: str


@lru_cache(maxsize=1)
def load_document_schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=1)
def _validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(load_document_schema())


# Reading.


def read_document(value: Any, *, prune_all: bool = False) -> ConfigurationDocument:
    """The document that a file's value is; :class:`ConfigurationInvalid` with a pointer for everything wrong."""
    raise_findings(list(_of_schema(value)))
    chosen = frozenset(PRUNABLE if prune_all else value.get("prune", []))
    raise_findings(
        [
            build_finding(
                "/prune", f"There is no section {name} in this file. To end everything in it, write `{name}: []`."
            )
            for name in value.get("prune", [])
            if name not in value
        ]
    )
    entries: Entries = {}
    findings: list[Finding] = []
    for name in SECTIONS:
        if name in value:
            entries[name] = _section(name, value[name], findings)
    raise_findings(findings)
    return ConfigurationDocument(value.get("tenant", ""), entries, chosen & frozenset(entries), compute_digest(value))


def _of_schema(value: Any) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield build_finding("", "A configuration file is an object with `format` and sections.")
        return
    for error in _validator().iter_errors(value):
        yield build_finding(
            "".join(f"/{escape_pointer_step(part)}" for part in error.instance_path), error.message[:300]
        )


def _section(name: str, value: Any, findings: list[Finding]) -> list[ConfigurationEntry]:
    if name == POLICY:
        findings += [
            build_finding(f"/{POLICY}{each.pointer}", f"{each.message} {each.fix}".strip())
            for each in validate_policy(value, doubts=False)
        ]
        return [ConfigurationEntry(POLICY, (), {"document": value}, pointer=f"/{POLICY}")]
    if SECTIONS[name].one:
        said = dict(value)
        findings += [
            build_finding(f"/{name}{each['pointer']}", each["message"]) for each in normalize_entry(name, said)
        ]
        return [ConfigurationEntry(name, (), said, pointer=f"/{name}")]
    section, found = SECTIONS[name], []
    seen: dict[tuple[Any, ...], str] = {}
    for index, item in enumerate(value):
        pointer = f"/{name}/{index}"
        said = dict(item)
        findings += [build_finding(pointer + each["pointer"], each["message"]) for each in normalize_entry(name, said)]
        identity = tuple(said.get(each, "") for each in section.identity)
        if not section.many and seen.setdefault(identity, pointer) != pointer:
            findings.append(build_finding(pointer, f"{seen[identity]} is about the same: {format_identity(identity)}."))
        fields = {each: said[each] for each in section.fields if each in said}
        found.append(ConfigurationEntry(name, identity, (section.defaults if section.whole else {}) | fields, pointer))
    return found


def format_identity(identity: tuple[Any, ...]) -> str:
    return " · ".join(str(part) for part in identity if part not in ("", None))


# Writing.


def build_document(tenant: str, entries: Entries) -> dict[str, Any]:
    """The file of these entries, in the one order."""
    document: dict[str, Any] = {"format": FORMAT, "tenant": tenant}
    for name in SECTIONS:
        if SECTIONS[name].one:
            for entry in entries.get(name, []):
                if any(entry.fields.values()):
                    document[name] = entry.fields["document"] if name == POLICY else entry.to_json()
        elif name in entries:
            document[name] = [entry.to_json() for entry in entries[name]]
    return document
