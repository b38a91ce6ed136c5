"""Time limits of a run: which one ended it, how long it is, and who set it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from invocations.sandbox.problems import LoadTimedOut, ToolTimedOut
from invocations.sandbox.results import IDLE, PROCESSOR
from unitools.capabilities import wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from invocations.sandbox.base import Limits, RunOutcome
    from unitools.manifest import Manifest

WALL = "timeout_ms"
# Where nobody lowered it: what the manifest names, or what the hub gives where it names nothing.
MANIFEST, USUAL = "manifest", "hub"
_SETTERS = {
    MANIFEST: "which the tool's manifest sets",
    USUAL: "which the hub gives a tool whose manifest names no limit",
    "grant": "which the grant sets",
    "installation": "which the installation sets",
    "policy": "which the policy sets",
}


def find_limiters(explanation: Sequence[Mapping[str, str]], rules: Mapping[str, str]) -> dict[str, str]:
    """By limit, who lowered it most: ``grant``, ``installation``, or ``policy`` with the rule. ``rules``: of policies, by limit."""
    least: dict[str, tuple[int, str]] = {}
    for entry in explanation:
        name, _, amount = entry.get("kept", "").partition(":")
        if name in wire.CEILINGS and amount.isdigit():
            least[name] = min((int(amount), entry["dropped_by"]), least.get(name, (int(amount), entry["dropped_by"])))
    return {
        name: f"{side} {rules[name]}" if side == "policy" and name in rules else side
        for name, (_, side) in least.items()
    }


def build_timeout_problem(
    outcome: RunOutcome, limits: Limits, *, limiters: Mapping[str, str], manifest: Manifest, is_asked: bool = True
) -> ToolTimedOut:
    """The problem of a run that was stopped by a clock. ``is_asked``: not so where the gate has sent nothing that counts."""
    match outcome.error_code:
        case code if code == IDLE:
            told = f"said nothing for {limits.idle_ms:,} ms"
            details: dict[str, Any] = {"limit": "idle_ms", "idle_ms": limits.idle_ms}
        case code if code == PROCESSOR:
            told = f"used {limits.cpu_s:,} s of processor time"
            details = {"limit": "cpu_ms", "cpu_ms": limits.cpu_s * 1000}
        case _:
            told = f"did not finish within {limits.wall_ms:,} ms"
            details = {"limit": WALL, "timeout_ms": limits.wall_ms}
    limiter = limiters.get(details["limit"]) or (_usual(manifest, details["limit"], limiters))
    by, _, rule = limiter.partition(" ")
    said = f"which the rule {rule} of a policy sets" if rule else _SETTERS[by]
    return ToolTimedOut(
        f"The tool {told}, {said}, and was stopped.",
        details=details | {"set_by": by} | ({"rule": rule} if rule else {}),
        remedy="Check whether its effect took place; then make a new call, under a new key where you send one."
        if is_asked
        else "Make a new call, under a new key where you send one. Nothing was sent that could have an effect.",
    )


def build_load_timeout_problem(outcome: RunOutcome) -> LoadTimedOut:
    """The problem of a run in which the tool was not come to; its modules may have been, and they may have had an effect."""
    load_s = settings.TOOLHUB_SANDBOX_LOAD_S
    if not outcome.nothing_ran:
        import_s = outcome.error_details.get("import_s", load_s)
        return LoadTimedOut(
            f"The tool's own modules were not imported within {import_s:,g} s, the hub's limit for every tool, in "
            "which waiting for a free processor is not counted, so the tool was not called.",
            details={"limit": "import_s", "import_s": import_s, "set_by": USUAL},
            remedy="Check whether they had an effect; then make a new call, under a new key where you send one.",
        )
    return LoadTimedOut(
        f"The tool's code was not imported within {load_s:,} s, the hub's limit for every tool, so the tool was not called.",
        details={"limit": "load_s", "load_s": load_s, "set_by": USUAL},
    )


def _usual(manifest: Manifest, limit: str, limiters: Mapping[str, str]) -> str:
    """Processor time that nobody names is as much as the run may last."""
    if limit == WALL:
        return MANIFEST if WALL in manifest.document else USUAL
    if limit in manifest.document.get("limits", {}):
        return MANIFEST
    return limiters.get(WALL) or _usual(manifest, WALL, limiters) if limit == "cpu_ms" else USUAL
