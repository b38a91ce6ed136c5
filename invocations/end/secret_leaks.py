"""Secret leaks: whether anything that comes out of a run holds a secret that went in.

What a tool returns, raises, prints, reports and asks to be connected to is looked through for the exact values, plain and in the
encodings in which they usually travel (:mod:`registry.secrets.encodings`). It stops what leaks by mistake; a tool that wants to
give a secret away can encode it in ways that nobody looks for, and is stopped by having no way out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.end.egress_report import replace_hosts
from invocations.problems import SecretLeak
from invocations.sandbox.base import RunStatus
from registry.secrets.encodings import find_spelled, list_secret_forms, redact_secrets

if TYPE_CHECKING:
    from invocations.sandbox.base import RunOutcome

# Who was stopped, or lost, stays that: whether an effect took place matters more. Its logs are redacted all the same.
FORCED = frozenset({RunStatus.TIMED_OUT, RunStatus.CANCELLED, RunStatus.LOST, RunStatus.START_FAILED})


def _places(outcome: RunOutcome) -> dict[str, Any]:
    """What a run says, by where it says it."""
    return {
        "result": [outcome.value, outcome.report],
        "error": [outcome.error_message, outcome.error_type, outcome.error_code, outcome.error_details],
        "output": [outcome.stdout, outcome.stderr],
        "attempts": [outcome.attempts, outcome.blocked],
        "files": [
            [[each.path, each.content.decode("utf-8", "replace")] for each in outcome.files],
            *(outcome.gone, [path for path, _ in outcome.skipped]),
        ],
        "artifacts": [[each.name, each.claim, each.content.decode("utf-8", "replace")] for each in outcome.artifacts],
    }


def find_leaks(outcome: RunOutcome, secrets: dict[str, str]) -> dict[str, list[str]]:
    """Which secrets, by their names, are where."""
    forms = {name: list_secret_forms(value) for name, value in secrets.items()}
    found: dict[str, list[str]] = {}
    for place, said in _places(outcome).items():
        if names := find_spelled(said, forms):
            found[place] = names
    asked = [each.host.lower() for each in outcome.connections if each.host != each.rule]  # no word of the tool's own
    hosts = sorted(name for name, each in forms.items() if any(_is_in_host(each, host) for host in asked))
    return found | ({"connections": hosts} if hosts else {})


def _is_in_host(forms: set[str], host: str) -> bool:
    """Names of hosts have no capitals, so a value loses them on its way out."""
    return any(form.lower() in host for form in forms)


def _host_redacted(host: str, secrets: dict[str, str]) -> str:
    names = [name for name, value in secrets.items() if _is_in_host(list_secret_forms(value), host.lower())]
    return f"[secret {names[0]}]" if names else host


def _attempt_redacted(attempt: str, secrets: dict[str, str]) -> str:
    capability, colon, what = redact_secrets(attempt, secrets).partition(":")
    return capability + colon + _host_redacted(what, secrets)


def withhold_leaks(outcome: RunOutcome, secrets: dict[str, str]) -> tuple[RunOutcome, SecretLeak | None]:
    """What may be kept of a run, and the problem when it gave a secret away."""
    found = find_leaks(outcome, secrets) if secrets else {}
    if not found:
        return outcome, None
    clean = replace(
        outcome,
        value=None,
        report={},
        error_code="",
        error_type=redact_secrets(outcome.error_type, secrets),
        error_message=redact_secrets(outcome.error_message, secrets),
        error_details={},
        blocked=redact_secrets(outcome.blocked, secrets),
        attempts=tuple(_attempt_redacted(each, secrets) for each in outcome.attempts),
        connections=replace_hosts(outcome.connections, lambda host: _host_redacted(host, secrets)),
        stdout=redact_secrets(outcome.stdout, secrets),
        stderr=redact_secrets(outcome.stderr, secrets),
        files=(),
        gone=(),
        artifacts=(),
        skipped=tuple((redact_secrets(path, secrets), why) for path, why in outcome.skipped),
    )
    names = sorted({name for each in found.values() for name in each})
    problem = SecretLeak(
        f"The tool gave the secret {', '.join(names)} away, so what it returned was withheld.",
        details={"secrets": names, "where": sorted(found)},
        remedy="Replace the secret, and have the tool corrected: a secret goes to no result, message, log or error.",
    )
    return clean, None if outcome.status in FORCED else problem
