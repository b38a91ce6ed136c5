"""Obligation enforcement on artifacts: what a policy's obligations mean for what a call leaves.

Detectors go over names and texts as they do over the output. What they cannot look into, an image or a document or a text that is too
long, is withheld: as with the output, the call has failed, or goes without it where the policy says ``degrade``. A pointer and a
watermark speak of the output alone.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from access.problems import ObligationFailed
from access.redaction import apply_detectors, apply_obligations, build_obligation_failure, number_duplicates
from invocations.artifacts.description import JSON, TEXTUAL, decode_text, replace_text
from invocations.sandbox.results import MAX_ARTIFACT_NAME, NotStrictJson, parse_strict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.artifacts.description import DescribedArtifact

MAX_LOOKED_THROUGH = 1024 * 1024  # takes about two seconds
MAX_DEPTH = 100
NUMBERED = len(" (1000)")  # what tells two names apart that have become the same
DEGRADE = "degrade"


def enforce_artifact_obligations(
    artifacts: Sequence[DescribedArtifact], obligations: Sequence[dict[str, Any]], *, call_id: str
) -> tuple[list[DescribedArtifact], list[dict[str, Any]], list[str]]:
    """The artifacts that may be kept, what was done to them, and sentences about those that were withheld.

    Raises :class:`ObligationFailed` where the policy wants the call to fail.
    """
    detectors = [each for each in obligations if "detector" in each]
    if not detectors:
        return list(artifacts), [], []
    kept: list[DescribedArtifact] = []
    applied: list[dict[str, Any]] = []
    said: list[str] = []
    for artifact in artifacts:
        try:
            changed, done = _enforce_on_artifact(artifact, detectors, call_id)
        except ObligationFailed as problem:
            if problem.details["on_failure"] != DEGRADE:
                raise
            named = problem.details["obligation"]
            applied.append({"action": named["action"], "detector": named["detector"], "in": "artifact", "failed": True})
            said.append(f"An artifact was withheld: {problem.detail}")
        else:
            kept.append(changed)
            applied += [each | {"in": "artifact"} for each in done if each["count"]]
    return [replace(each, name=name) for each, name in zip(kept, _names(kept, detectors), strict=True)], applied, said


def _names(artifacts: Sequence[DescribedArtifact], detectors: list[dict[str, Any]]) -> list[str]:
    """What the detectors leave of the names, each once and no longer than a name may be."""
    found = [str(apply_detectors(each.name, detectors)) for each in artifacts]
    longest = MAX_ARTIFACT_NAME - NUMBERED
    return number_duplicates(
        [name if name == each.name else name[:longest] for name, each in zip(found, artifacts, strict=True)]
    )


def _enforce_on_artifact(
    artifact: DescribedArtifact, detectors: list[dict[str, Any]], call_id: str
) -> tuple[DescribedArtifact, list[dict[str, Any]]]:
    text = decode_text(artifact.content) if TEXTUAL.fullmatch(artifact.media_type) else None
    if text is None or len(artifact.content) > MAX_LOOKED_THROUGH:
        raise build_obligation_failure(
            detectors,
            "an artifact cannot be looked into" if text is None else "an artifact is too long to be looked into",
        )
    value = _read(artifact.content, detectors) if artifact.media_type == JSON else text
    obliged = apply_obligations(value, detectors, call_id=call_id)
    if obliged.value == value:
        return artifact, obliged.applied
    changed = obliged.value if artifact.media_type != JSON else json.dumps(obliged.value, ensure_ascii=False, indent=1)
    return replace_text(artifact, changed), obliged.applied


def _read(content: bytes, detectors: list[dict[str, Any]]) -> Any:
    """The document, when there is only one way to read it: a name that stands there twice would hide a value."""
    try:
        return parse_strict(content, max_bytes=MAX_LOOKED_THROUGH, max_depth=MAX_DEPTH)
    except NotStrictJson as error:
        raise build_obligation_failure(detectors, f"an artifact cannot be looked into. {error}".rstrip(".")) from error
