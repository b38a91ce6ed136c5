"""Obligations: what must be done to an output before anybody gets it, and whether it was done.

Obligations are data (``obligations.schema.json``). They are carried out in one order, however they are listed: places first, then
detectors on all texts that remain, then the watermark. One that cannot be carried out is never passed over: the output is
withheld, and ``on_failure`` says whether that ends the call as failed (deny) or not (degrade).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from access.problems import ObligationFailed
from access.redaction.detectors import ALL, KINDS
from access.redaction.masks import (
    REDACTED,
    masked_hit,
    masked_whole,
    redacted_hit,
)
from access.redaction.pointers import PointerVisit, parse_pointer
from access.redaction.sweeps import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Obligation = dict[str, Any]

DENY, DEGRADE = "deny", "degrade"
WATERMARK = "_watermark"
DEFAULT_TEXT = "toolhub {call_id}"
SCHEMA_PATH = Path(__file__).with_name("obligations.schema.json")


@lru_cache(maxsize=1)
def obligations_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text())
    return schema


@lru_cache(maxsize=1)
def _validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(obligations_schema())


def check_obligations(obligations: Any) -> list[dict[str, str]]:
    """What is wrong with a list of obligations: ``{pointer, message}`` for each finding; empty when nothing is."""
    return [
        {
            "pointer": "".join(f"/{part}" for part in error.instance_path),
            "message": error.message[:300],
        }
        for error in _validator().iter_errors(obligations)
    ]


@dataclass(slots=True)
class ObligationResult:
    """``value`` is what may be delivered; ``applied`` what was done: action, where or what, and how often."""

    value: Any
    applied: list[dict[str, Any]] = field(default_factory=list)


def _turn(obligation: Obligation) -> tuple[int, int, str]:
    """The order in which they are carried out. Whatever the order of the list, the stricter of two has the last word:
    of places the deeper and the mask come first, of detectors the word that leaves less."""
    redacts = obligation["action"] == "redact"
    if obligation["action"] == "watermark":
        return 2, 0, obligation.get("pointer", "")
    if "pointer" in obligation:
        return 0, 2 * -len(parse_pointer(obligation["pointer"])) + redacts, obligation["pointer"]
    return 1, not redacts, obligation["detector"]


def _failed(obligation: Obligation, why: str) -> ObligationFailed:
    named = obligation.get("pointer", obligation.get("detector", "the output"))
    return ObligationFailed(
        f"The policy obliges the hub to {obligation['action']} {named or 'the output'}, and {why}.",
        details={
            "obligation": {name: each for name, each in obligation.items() if name != "text"},
            "on_failure": obligation.get("on_failure", DENY),
        },
        remedy="Ask an owner of the policy to correct the obligation, or the tool's author to correct its output.",
    )


def detector_kinds(obligation: Obligation) -> tuple[str, ...]:
    """What an obligation with a detector looks for."""
    return KINDS if obligation["detector"] == ALL else (obligation["detector"],)


def _at_pointer(value: Any, obligation: Obligation) -> tuple[Any, list[dict[str, Any]]]:
    change: Callable[[Any], Any] = masked_whole if obligation["action"] == "mask" else lambda _: REDACTED
    visit = PointerVisit()
    changed = visit.change(value, parse_pointer(obligation["pointer"]), change)
    if visit.missing and not visit.found and not obligation.get("optional", False):
        raise _failed(obligation, "the output has no such place")
    return changed, [{"action": obligation["action"], "pointer": obligation["pointer"], "count": visit.found}]


def _by_detector(value: Any, obligation: Obligation) -> tuple[Any, list[dict[str, Any]]]:
    action = obligation["action"]
    sweep = Sweep(detector_kinds(obligation), masked_hit if action == "mask" else redacted_hit)
    changed = sweep.value(value)
    done = [{"action": action, "detector": kind, "count": count} for kind, count in sorted(sweep.counts.items())]
    return changed, done or [{"action": action, "detector": obligation["detector"], "count": 0}]


def _marked(value: Any, text: str, obligation: Obligation) -> Any:
    if not isinstance(value, str):
        raise _failed(obligation, "there is no text there")
    return f"{value} [{text}]"


def _watermark(value: Any, obligation: Obligation, *, call_id: str) -> tuple[Any, list[dict[str, Any]]]:
    """A visible mark: after the text at the pointer; without a pointer in a property of the output, or after it if it is a text."""
    text = obligation.get("text", DEFAULT_TEXT).replace("{call_id}", call_id)
    visit, pointer = PointerVisit(), obligation.get("pointer")
    if pointer is not None:
        value = visit.change(value, parse_pointer(pointer), partial(_marked, text=text, obligation=obligation))
        if visit.missing and not visit.found and not obligation.get("optional", False):
            raise _failed(obligation, "the output has no such place")
        return value, [{"action": "watermark", "pointer": pointer, "count": visit.found}]
    if isinstance(value, dict) and WATERMARK not in value:
        return value | {WATERMARK: text}, [{"action": "watermark", "pointer": f"/{WATERMARK}", "count": 1}]
    return _marked(value, text, obligation), [{"action": "watermark", "pointer": "", "count": 1}]


def _once_each(obligations: Sequence[Obligation]) -> list[Obligation]:
    """In their order, each once; of an output there is one watermark, which says all that the layers want it to."""
    found: list[Obligation] = []
    marks: list[Obligation] = []
    for obligation in sorted(obligations, key=_turn):
        of_output = obligation["action"] == "watermark" and "pointer" not in obligation
        kept = marks if of_output else found
        if obligation not in kept:
            kept.append(obligation)
    if marks:
        texts = dict.fromkeys(mark.get("text", DEFAULT_TEXT) for mark in marks)
        strict = DENY if any(mark.get("on_failure", DENY) == DENY for mark in marks) else DEGRADE
        found.append({"action": "watermark", "text": "; ".join(texts), "on_failure": strict})
    return found


def apply_obligations(
    value: Any,
    obligations: Sequence[Obligation],
    *,
    call_id: str,
    is_valid: Callable[[Any], bool] = lambda _: True,
) -> ObligationResult:
    """Carry them out. ``is_valid`` says whether what comes out still is what the tool promises.

    Raises :class:`ObligationFailed`; its ``details["on_failure"]`` is what the policy wants then. The strictest of all that failed
    decides, so each is tried.
    """
    result, failures = ObligationResult(value), []
    obligations = _once_each(obligations)
    for obligation in obligations:
        try:
            if obligation["action"] == "watermark":
                result.value, applied = _watermark(result.value, obligation, call_id=call_id)
            elif "pointer" in obligation:
                result.value, applied = _at_pointer(result.value, obligation)
            else:
                result.value, applied = _by_detector(result.value, obligation)
        except ObligationFailed as problem:
            failures.append(problem)
        else:
            result.applied += applied
    if not failures and not is_valid(result.value):
        failures = [_failed(each, "then the output is not what the tool promises") for each in obligations]
    if failures:
        raise _strictest(failures)
    return result


def _strictest(failures: list[ObligationFailed]) -> ObligationFailed:
    return next((each for each in failures if each.details["on_failure"] == DENY), failures[0])


def build_obligation_failure(obligations: Sequence[Obligation], why: str) -> ObligationFailed:
    """The failure of obligations of which none can be carried out, for this reason."""
    return _strictest([_failed(each, why) for each in obligations])


def apply_detectors(value: Any, obligations: Sequence[Obligation]) -> Any:
    """What the detectors make of what is said beside the output: warnings, a plan, the details of a problem, logs."""
    for obligation in _once_each(obligations):
        if "detector" in obligation:
            value, _ = _by_detector(value, obligation)
    return value
