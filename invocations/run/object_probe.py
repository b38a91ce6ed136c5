"""Object probe: whether an object of others can be made, and says of itself what its manifest pins, before anybody reviews it.

It is made from its lock in a box that is used once, without a network, files or secrets, by the `build` of the tool's own module; what
its `describe` returns is held against the digest in the manifest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.decide.profiles import give_kept_files
from invocations.run.server_probe import (
    build_probe,
    clean_text,
    judge_failure,
    not_tried,
    run_alone,
    stage_probe,
    tail_text,
)
from invocations.sandbox.base import Limits, Profile, RunStatus
from invocations.sandbox.results import PROCESSOR
from registry.dependencies.failures import CannotBuild, Failure
from unitools.mcp_listings import compute_json_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome
    from registry.models import ToolVersion
    from unitools.manifest import Manifest

WALL_MS, CPU_S = 60_000, 60  # frameworks are large: what they import takes seconds on a host that is loaded
RESULT_BYTES, RESULT_DEPTH = 1024 * 1024, 64
DESCRIBE = "describe"
_NOT_TRIED = (RunStatus.START_FAILED, RunStatus.LOST, RunStatus.CANCELLED)
_SUBMIT = "and submit a new version of the tool."
_LOCKED = "A hub locks all packages before the review, and a call installs none and starts no program."
_MISSING = f"The module {{0}} did not come along: add the package that has it to dependencies {_SUBMIT}"
# The error that ended it says what is missing, and what a person would type: it has installed nothing.
_ASKS_FOR = re.compile(
    r"(?:ImportError|ModuleNotFoundError): [^\n]*?(?:No module named '([\w.]{1,100})'"
    r"|\bimport (?:the )?[`'\"]?([\w.-]{1,100})[`'\"]? (?:python )?package\b"
    r"|\b(?:pip3? install|uv add) ([A-Za-z0-9][\w.-]{0,100}))"
)
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"\b(?:pip3?|uv|poetry|conda)\b\W{1,6}(?:add|install|sync|pip)\b",
        f"It installs packages when it is made. {_LOCKED} Name what it needs under dependencies {_SUBMIT}",
    ),
    (
        r"ModuleNotFoundError: No module named '([\w.]{1,100})'",
        _MISSING,
    ),
    (
        r"module '[\w.]{1,200}' has no attribute 'describe'",
        f"The hub asks `describe` of the module, which `unitools bring python` writes: put it back {_SUBMIT}",
    ),
    (
        r"KeyError: '([A-Z][A-Z0-9_]{1,60})'|\b([A-Z][A-Z0-9_]{2,60}) (?:environment variable|is not set|is required|must be set)",
        f"It wants {{0}} in its environment: name it under secrets, and put it there in `build`, {_SUBMIT}",
    ),
    (
        r"has no attribute|cannot import name|unexpected keyword argument|ImportError",
        "It was written for another version of something that it uses: name that version under dependencies, or add a "
        f"constraint, {_SUBMIT}",
    ),
)
_OTHERWISE = f"Read what it says below. Correct `build`, its dependencies or its secrets, {_SUBMIT}"


def probe_object(version: ToolVersion, folder: Path, beat: Callable[[], None]) -> None:
    """Raises :class:`CannotBuild` with what a person can do, as the probe of a server does."""
    package, image = stage_probe(version)
    manifest = version.view
    call = build_probe(manifest, package, folder, module=manifest.module, entry=DESCRIBE)
    profile = give_kept_files(Profile(_build_limits(manifest), isolation="single"), manifest.keeps)
    outcome = run_alone(replace(call, image=image), profile, beat)
    if outcome.status is not RunStatus.OK:
        raise judge_failure(describe_failure(outcome), outcome.status)
    if compute_json_digest(outcome.value) != manifest.origin["object_digest"]:
        raise CannotBuild(_differs(manifest, outcome.value))


def _build_limits(manifest: Manifest) -> Limits:
    return Limits(
        wall_ms=WALL_MS,
        cpu_s=CPU_S,
        memory_bytes=manifest.limit("memory_bytes"),
        result_bytes=RESULT_BYTES,
        result_depth=RESULT_DEPTH,
    )


def describe_failure(outcome: RunOutcome) -> Failure:
    """Of an object that could not be made: why, as far as it can be seen, and what is usually done about it."""
    if outcome.status in _NOT_TRIED:
        return not_tried(outcome)
    output = tail_text(outcome.stderr or outcome.stdout)
    match outcome.status:
        case RunStatus.TIMED_OUT if outcome.error_code == PROCESSOR:
            message = f"The object used {CPU_S} seconds of processor time, all that it has, before it was made."
        case RunStatus.TIMED_OUT | RunStatus.LOAD_TIMED_OUT:
            message = f"The object was not made within {WALL_MS // 1000} seconds."
        case RunStatus.OUT_OF_MEMORY:
            message = "The object was not made within its memory: raise limits.memory_bytes."
        case _:
            message = f"The object cannot be made: {outcome.error_type} {outcome.error_message}".rstrip()
    last = " ".join(f"{outcome.error_type}: {outcome.error_message}".split())
    return Failure(
        "object_not_made", clean_text(message)[:400], _find_remedy(f"{outcome.stderr}\n{last}", last), output
    )


def _find_remedy(text: str, last: str) -> str:
    if asked := _ASKS_FOR.match(last):
        return _MISSING.format(next(filter(None, asked.groups())))
    for pattern, remedy in _REMEDIES:
        if found := re.search(pattern, text):
            return remedy.format(next((each for each in found.groups() if each), ""))
    return _OTHERWISE


def _differs(manifest: Manifest, found: Any) -> Failure:
    said = found if isinstance(found, dict) else {}
    names = [
        each
        for each in ("description", "input_schema", "output_schema")
        if compute_json_digest(said.get(each)) != compute_json_digest(manifest.document.get(each))
    ]
    what = f" What the manifest has otherwise: {', '.join(names)}." if names else ""
    return Failure(
        "object_differs",
        f"The object says of itself something else than when it was brought.{what}",
        "Bring it again with `unitools bring python` and --package, so that it is looked at with the packages that the hub locks. "
        "What says something else each time cannot be pinned.",
    )
