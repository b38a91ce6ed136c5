"""Kinds of changes: those told apart in a manifest, and the version bump and attention that each needs.

Two things decide. Callers: what worked with the old version must work with the new one, or the major number moves. And reach:
grants, consents and pins name a major version, so whatever lets a tool reach more, or be watched less, moves it too. Nobody's
consent covers what was not there when they gave it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

BUMPS = ("none", "patch", "minor", "major")
RISKS = ("low", "medium", "high")
MAX_SHOWN = 4096


class ChangeKind(NamedTuple):
    bump: str
    risk: str
    text: str


# The version bump and the risk of each kind, and what reviewers read.
_ROWS: dict[str, tuple[str, str, str]] = {
    "id.changed": ("major", "high", "This is another tool: the id is {after}, not {before}."),
    "display_name.changed": ("patch", "low", "The name that people see is another."),
    "description.changed": ("patch", "medium", "The description is another. Models choose and use the tool by it."),
    "call_sentence.added": ("patch", "high", "People who decide on a call read a sentence of its own now."),
    "call_sentence.changed": ("patch", "high", "People who decide on a call read another sentence."),
    "call_sentence.removed": ("patch", "high", "People who decide on a call no longer read a sentence of its own."),
    "examples.added": ("patch", "low", "People read a further example of what to ask for: “{after}”."),
    "examples.removed": ("patch", "low", "People no longer read an example of what to ask for: “{before}”."),
    "localizations.added": ("patch", "high", "People who read a further language see texts of their own."),
    "localizations.changed": ("patch", "high", "People who read this language see another text than before."),
    "localizations.removed": ("patch", "low", "People who read this language see the manifest's own texts again."),
    "tags.added": ("minor", "medium", "The tag {after} was added; grants and policies that name it apply now."),
    "tags.removed": ("minor", "medium", "The tag {before} was removed; grants and policies that name it apply no longer."),
    "scopes.added": ("major", "high", "The tool asks for a further scope: {after}."),
    "scopes.removed": ("minor", "low", "The tool no longer asks for the scope {before}."),
    "capabilities.added": ("major", "high", "The tool asks to reach more: {after}."),
    "capabilities.removed": ("minor", "low", "The tool asks to reach less: {before} is not covered any longer."),
    "secrets.added": ("major", "high", "The tool gets a further secret of each tenant: {after}."),
    "secrets.removed": ("minor", "low", "The tool no longer gets the secret {before}."),
    "secrets.widened": ("major", "high", "A secret may be sent to more hosts than before."),
    "secrets.narrowed": ("minor", "low", "A secret may be sent to fewer hosts than before."),
    "secrets.required": ("major", "medium", "The tool does not run any longer without a secret that was optional."),
    "secrets.optional": ("minor", "low", "The tool runs without a secret that it needed."),
    "secrets.described": ("patch", "low", "What is said about a secret is another."),
    "data_classes.added": ("major", "high", "The tool touches a further kind of data: {after}."),
    "data_classes.removed": ("minor", "low", "The tool no longer touches {before} data."),
    "side_effect.raised": ("major", "high", "The side effect is {after} instead of {before}, which is more or something else."),
    "side_effect.lowered": ("minor", "high", "The side effect is {after} instead of {before}; grants by effect reach it."),
    "safety_class.raised": ("minor", "medium", "The safety class is {after} instead of {before}."),
    "safety_class.lowered": ("minor", "high", "The safety class is {after} instead of {before}; it is reviewed and watched less."),
    "consent.required": ("major", "medium", "Calls need a consent that they did not need."),
    "consent.tightened": ("minor", "medium", "A consent is good for less than before: {after} instead of {before}."),
    "consent.loosened": ("major", "high", "Fewer calls need a consent, or one is good for more than before."),
    "timeout.raised": ("patch", "low", "A call may take up to {after} ms instead of {before} ms."),
    "timeout.lowered": ("minor", "medium", "A call is ended after {after} ms instead of {before} ms."),
    "limits.input_raised": ("minor", "low", "Larger arguments are taken: {after} bytes instead of {before}."),
    "limits.input_lowered": ("major", "medium", "Arguments are refused above {after} bytes instead of {before}."),
    "limits.depth_raised": (
        "minor", "low", "Arguments and results may be nested {after} levels deep instead of {before}."
    ),
    "limits.depth_lowered": (
        "major", "medium", "Arguments and results that are nested deeper than {after} levels are refused, instead of {before}."
    ),
    "limits.raised": ("patch", "low", "A limit of the run is {after} instead of {before}."),
    "limits.lowered": ("minor", "medium", "A limit of the run is {after} instead of {before}."),
    "concurrency.changed": ("minor", "medium", "Calls run {after} instead of {before}."),
    "state.added": ("minor", "high", "Calls leave files for the calls after them now: {after}."),
    "state.removed": ("major", "medium", "Calls find no files of earlier calls any longer; they kept {before}."),
    "state.scope_changed": ("major", "high", "Whose files are kept is another: {after} instead of {before}."),
    "state.changed": ("minor", "medium", "Other amounts of files are kept: {after} instead of {before}."),
    "idempotency.strengthened": ("minor", "low", "The tool honours an Idempotency-Key now."),
    "idempotency.weakened": ("major", "high", "The tool no longer honours an Idempotency-Key; a repeated call may act twice."),
    "idempotency_keep.raised": ("minor", "low", "A repeated key is answered for {after} s instead of {before} s."),
    "idempotency_keep.lowered": ("major", "medium", "A repeated key makes a new call after {after} s instead of {before} s."),
    "determinism.changed": ("minor", "low", "A replay expects another thing of outputs: {after} instead of {before}."),
    "dry_run.added": ("minor", "low", "The tool honours dry runs now."),
    "dry_run.removed": ("major", "medium", "The tool no longer honours dry runs."),
    "provider_compat.widened": ("minor", "low", "More models may use the tool."),
    "provider_compat.narrowed": ("major", "medium", "Models that could use the tool cannot any longer."),
    "provider_compat.platform_changed": ("minor", "medium", "The tool is for the hub's versions {after} instead of {before}."),
    "deprecations.added": ("minor", "low", "Something is deprecated: {after}."),
    "deprecations.changed": ("minor", "low", "What is said about a deprecation is another."),
    "deprecations.removed": ("patch", "low", "A deprecation was withdrawn: {before}."),
    "implementation.changed": ("patch", "medium", "Other code answers: {after} instead of {before}."),
    "operation.changed": ("patch", "medium", "The request that a call becomes is written otherwise: {after} instead of {before}."),
    "remote.changed": ("patch", "medium", "The server is asked otherwise: {after} instead of {before}."),
    "remote.reach_changed": ("major", "high", "The request goes elsewhere, or as somebody else: {after} instead of {before}."),
    "operation.reach_changed": ("major", "high", "The request goes elsewhere, or as somebody else: {after} instead of {before}."),
    "model.changed": ("patch", "medium", "Another model answers, or the same one otherwise: {after} instead of {before}."),
    "requires_sandbox.raised": ("minor", "low", "The tool is always run in the sandbox now."),
    "requires_sandbox.lowered": ("major", "high", "The tool asks to run outside the sandbox."),
    "isolation.strengthened": ("patch", "low", "Calls share less with each other: {after} instead of {before}."),
    "isolation.weakened": ("minor", "high", "Calls may share more with each other: {after} instead of {before}."),
    "dependencies.added": ("patch", "medium", "Further code of others is used: {after}."),
    "dependencies.changed": ("patch", "medium", "Code of others is used in another version: {after} instead of {before}."),
    "dependencies.removed": ("patch", "low", "The tool no longer uses {before}."),
    "lock.added": ("patch", "medium", "Further code of others comes along: {after}."),
    "lock.changed": ("patch", "medium", "Code of others comes along in another version: {after} instead of {before}."),
    "lock.files_added": ("patch", "medium", "The same version of others' code may come from further files: {after}."),
    "lock.files_removed": ("patch", "low", "The same version of others' code comes from fewer files: {after}."),
    "lock.files_replaced": ("patch", "high", "The same version of others' code is other files: {after} instead of {before}."),
    "lock.removed": ("patch", "low", "Code of others no longer comes along: {before}."),
    "constraints.added": ("patch", "low", "What comes along keeps to a further constraint: {after}."),
    "constraints.removed": ("patch", "low", "What comes along no longer keeps to {before}."),
    "origin.added": ("patch", "high", "A server, a service or an object of others answers now: {after}."),
    "origin.removed": ("patch", "high", "No server, service or object of others answers any longer; it was {before}."),
    "origin.package_changed": ("major", "high", "Another package answers: {after} instead of {before}."),
    "origin.url_changed": ("major", "high", "Another server answers: {after} instead of {before}."),
    "origin.version_changed": ("patch", "medium", "The server is of another version: {after} instead of {before}."),
    "origin.tool_changed": ("major", "high", "Another tool of the server answers: {after} instead of {before}."),
    "origin.result_changed": ("patch", "medium", "What the server returns is taken otherwise: {after} instead of {before}."),
    "origin.entry_changed": ("patch", "high", "The server itself describes the tool otherwise: name, texts, schemas or hints."),
    "origin.listing_changed": ("patch", "medium", "The server lists other tools beside it, or describes them otherwise."),
    "origin.protocol_changed": ("patch", "low", "The server speaks another revision of MCP: {after} instead of {before}."),
    "origin.document_changed": ("patch", "low", "The document is another file or version: {after} instead of {before}."),
    "origin.operation_changed": ("major", "high", "Another operation of the document answers: {after} instead of {before}."),
    "origin.description_changed": ("patch", "high", "The document describes the operation otherwise: texts, schemas or answers."),
    "origin.object_changed": ("major", "high", "Another object answers: {after} instead of {before}."),
    "origin.object_version_changed": ("patch", "high", "It is another version of the object: {after} instead of {before}."),
    "origin.object_description_changed": ("patch", "high", "The object describes itself otherwise: name, texts or schemas."),
    "quotes.added": ("minor", "low", "Answers quote something that is soon out of date: {after}."),
    "quotes.removed": ("minor", "low", "Answers no longer quote: {before}."),
    "ttl.added": ("minor", "low", "Answers say how long they are fresh: {after} s."),
    "ttl.raised": ("minor", "medium", "Answers are called fresh for {after} s instead of {before} s."),
    "ttl.lowered": ("minor", "low", "Answers are called fresh for {after} s instead of {before} s."),
    "ttl.removed": ("minor", "medium", "Answers no longer say how long they are fresh."),
    "output_repair.added": ("minor", "medium", "Outputs that do not match their schema are repaired in a further way: {after}."),
    "output_repair.removed": ("minor", "medium", "Outputs that do not match their schema are no longer repaired by {before}."),
    "async.changed": ("major", "medium", "Callers get their answer in another way: at once, or to be fetched later."),
    "field.changed": ("major", "high", "This differs in a way that cannot be judged, so it counts as breaking."),
    "field.rewritten": ("patch", "low", "This is written in another way and means the same."),
    "version.not_increased": ("patch", "low", "The version {after} is not newer than {before}."),
}  # fmt: skip
KINDS = {name: ChangeKind(*row) for name, row in _ROWS.items()}


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One difference between two manifests.

    ``id`` is the same whenever the same thing becomes the same (a digest of kind, pointer and after), so a reviewer's
    acknowledgement of it can be kept. ``pointer`` leads into the new manifest, for what was removed into the old one.
    """

    id: str
    kind: str
    pointer: str
    before: Any
    after: Any
    bump: str  # none | patch | minor | major
    risk: str  # low | medium | high
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def make_change(kind: str, pointer: str, before: Any, after: Any, *, known: ChangeKind | None = None) -> ManifestChange:
    """A change of a kind from the table, or of one that is ``known`` to the caller."""
    bump, risk, text = known or KINDS[kind]
    identity = hashlib.sha256(_written([kind, pointer, after]).encode()).hexdigest()[:12]
    message = text.format(before=_short(before), after=_short(after)) if known is None else text
    return ManifestChange(identity, kind, pointer, _kept(before), _kept(after), bump, risk, message)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"


def _kept(value: Any) -> Any:
    """What is stored and shown of a value: all of it, unless it is long."""
    text = _written(value)
    if len(text) <= MAX_SHOWN:
        return value
    return f"{text[:200]}… ({len(text):,} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"
