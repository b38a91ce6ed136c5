"""Side effects: whether a manifest says the same of them in capabilities, safety class, consent and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.checks.findings import declare_rule, declare_warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding, Path
    from unitools.manifest import Manifest

NEEDS = {"Network": ("net", "cidr"), "Filesystem": ("fs",), "Browser": ("browser",), "Process": ("proc",)}
CHANGES_FILES = frozenset({"write", "create", "delete"})
CHANGES_REMOTE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
GRAVE = ("Write", "Process")
SENSITIVE = frozenset({"payment", "health", "credentials"})

NONE_WITH_CAPABILITY = declare_rule(
    "effect.none_with_capability",
    "A tool without side effect reaches nothing outside its own code.",
    "Name the side effect, or drop the capability.",
)
READ_THAT_WRITES = declare_rule(
    "effect.read_that_writes",
    "A tool that only reads asks for no file to write, create or delete.",
    "Use Write or Filesystem.",
)
READ_THAT_SENDS = declare_warning(
    "effect.read_that_sends",
    "A tool that only reads asks for no more than GET, HEAD and OPTIONS.",
    'With http set "methods": ["GET", "HEAD"]. Inside https nobody sees them: name the side effect Network or Write.',
)
HIDDEN_PROCESS = declare_rule(
    "effect.hidden_process",
    "A tool that starts programs says Process (or Write): both need a consent.",
    'Set "side_effect": "Process".',
)
MORE_THAN_SAID = declare_warning(
    "effect.more_than_said",
    "The side effect is the gravest thing that the capabilities allow.",
    "Name the graver effect, or drop the capability.",
)
WITHOUT_CAPABILITY = declare_rule(
    "effect.without_capability",
    "A tool with the effect Network, Filesystem, Browser or Process asks for the capability that it needs.",
    "Add the capability, or change the side effect.",
)
OUTSIDE_SANDBOX = declare_rule(
    "effect.outside_sandbox",
    "A tool with a side effect always runs in the sandbox.",
    "Set requires_sandbox to true, or leave it out.",
)
SECRETS_OUTSIDE_SANDBOX = declare_rule(
    "effect.secrets_outside_sandbox",
    "Secrets go into sandboxes only.",
    "Set requires_sandbox to true, or leave it out.",
)
LOW_BUT_GRAVE = declare_warning(
    "safety.low_but_grave",
    "A tool that writes or starts programs is at least of safety class Medium.",
    'Set "safety_class": "Medium" or "High".',
)
LOW_BUT_SENSITIVE = declare_warning(
    "safety.low_but_sensitive",
    "A tool that handles payment, health or credentials is at least of safety class Medium.",
    'Set "safety_class": "Medium" or "High".',
)
CONSENT_DENIED = declare_rule(
    "consent.contradicted",
    "A tool that needs a consent by its class or effect does not say that it needs none.",
    'Set "required": true, or leave it out.',
)
CONSENT_UNUSED = declare_warning(
    "consent.unused",
    "Validity and scope of a consent stand only where one is needed.",
    'Set "required": true, or remove them.',
)
CONSENT_ENDLESS = declare_warning(
    "consent.standing_for_high",
    "A High tool is not used on one consent for ever.",
    'Use "scope": "period" or "once".',
)
CONSENT_VALIDITY = declare_warning(
    "consent.standing_with_validity",
    "A standing consent ends when it is revoked, not by time.",
    'Remove validity_seconds, or use "scope": "period".',
)
NOT_KEYED = declare_warning(
    "write.not_keyed",
    "A write honours an idempotency key: without one it is never retried after a crash.",
    'Honour the key and set "idempotency": "keyed".',
)
DRY_RUN_IDLE = declare_warning(
    "dry_run.without_effect",
    "Dry runs are for tools that change something.",
    "Remove dry_run, or name the side effect.",
)


def check_effect(manifest: Manifest) -> Iterator[ManifestFinding]:
    """TOOLS-8: what the tool says it does and what it asks for must agree."""
    named = [name for name in manifest.domains if name != "tmp"]
    effect = manifest.side_effect
    if effect == "None":
        for name in named:
            yield NONE_WITH_CAPABILITY.at(("capabilities", name), f"A tool with side_effect None asks for {name}.")
    needed = NEEDS.get(effect, ())
    if needed and not set(needed) & set(named):
        yield WITHOUT_CAPABILITY.at(
            ("capabilities", needed[0]),
            f"side_effect is {effect}, but no {' or '.join(needed)} capability is asked for.",
            f"Add capabilities.{needed[0]}, or change the side effect.",
        )
    if manifest.document.get("requires_sandbox") is False:
        if effect != "None":
            yield OUTSIDE_SANDBOX.at(("requires_sandbox",), f"side_effect is {effect}, but no sandbox is asked for.")
        if manifest.secrets:
            yield SECRETS_OUTSIDE_SANDBOX.at(
                ("requires_sandbox",), "The tool takes secrets, but no sandbox is asked for."
            )


def check_effect_is_the_gravest(manifest: Manifest) -> Iterator[ManifestFinding]:
    asked, effect = manifest.capabilities, manifest.side_effect
    writes = [place for place, entry in enumerate(asked.get("fs", [])) if CHANGES_FILES & set(entry["actions"])]
    runs = bool(asked.get("proc")) or any("exec" in entry["actions"] for entry in asked.get("fs", []))
    if writes and effect in ("None", "Read"):
        yield READ_THAT_WRITES.at(("side_effect",), f"side_effect is {effect}, but files are asked for writing.")
    if runs and effect not in ("None", *GRAVE):
        yield HIDDEN_PROCESS.at(("side_effect",), f"side_effect is {effect}, but the tool asks to start programs.")
    if effect == "Read" and manifest.remote is None:  # MCP asks by POST for everything
        for kind in ("net", "cidr"):
            for place, entry in enumerate(asked.get(kind, [])):
                if not entry.get("methods") or CHANGES_REMOTE & set(entry["methods"]):
                    yield READ_THAT_SENDS.at(
                        ("capabilities", kind, place),
                        "side_effect is Read, but every method is asked for."
                        if not entry.get("methods")
                        else "side_effect is Read, but methods that change something are asked for.",
                    )
    for path, what in _beyond(manifest, writes):
        yield MORE_THAN_SAID.at(path, f"side_effect is {effect}, but {what} asked for as well.")


def _beyond(manifest: Manifest, writes: list[int]) -> Iterator[tuple[Path, str]]:
    """What the effect does not make one expect. Write and Process are the gravest already."""
    asked, effect = manifest.capabilities, manifest.side_effect
    if effect in ("Network", "Browser") and writes:
        yield ("capabilities", "fs", writes[0]), "files to write are"
    if effect in ("Read", "Network", "Filesystem") and asked.get("browser"):
        yield ("capabilities", "browser"), "a browser is"
    for kind in ("net", "cidr"):
        if effect == "Filesystem" and asked.get(kind):
            yield ("capabilities", kind), "a network is"


def check_safety(manifest: Manifest) -> Iterator[ManifestFinding]:
    if manifest.safety_class != "Low":
        return
    if manifest.side_effect in GRAVE:
        yield LOW_BUT_GRAVE.at(
            ("safety_class",), f"side_effect is {manifest.side_effect}, but the safety class is Low."
        )
    if found := sorted(SENSITIVE & set(manifest.data_classes)):
        yield LOW_BUT_SENSITIVE.at(("safety_class",), f"The data is {', '.join(found)}, but the safety class is Low.")


def check_consent(manifest: Manifest) -> Iterator[ManifestFinding]:
    """TOOLS-19: High, Write and Process need one whatever the manifest says."""
    said = manifest.document.get("consent", {})
    if manifest.needs_consent and said.get("required") is False:
        why = "safety_class High" if manifest.safety_class == "High" else f"side_effect {manifest.side_effect}"
        yield CONSENT_DENIED.at(("consent", "required"), f"{why} needs a consent.")
    if not manifest.needs_consent:
        for name in ("scope", "validity_seconds"):
            if name in said:
                yield CONSENT_UNUSED.at(("consent", name), "No consent is needed, so this says nothing.")
        return
    if said.get("scope") == "standing":
        if manifest.safety_class == "High":
            yield CONSENT_ENDLESS.at(("consent", "scope"), "The tool is High, but a consent may last for ever.")
        if "validity_seconds" in said:
            yield CONSENT_VALIDITY.at(("consent", "validity_seconds"), "A standing consent does not run out.")


def check_repeating(manifest: Manifest) -> Iterator[ManifestFinding]:
    # A server of MCP takes no key, so that there is nothing to honour.
    is_of_server = manifest.server is not None or manifest.remote is not None
    if manifest.side_effect == "Write" and manifest.idempotency == "none" and not is_of_server:
        yield NOT_KEYED.at(("idempotency",), "A write without an idempotency key is never retried after a crash.")
    if manifest.honours_dry_run and manifest.side_effect in ("None", "Read"):
        yield DRY_RUN_IDLE.at(
            ("dry_run",), f"side_effect is {manifest.side_effect}, so a dry run is the same as a run."
        )
