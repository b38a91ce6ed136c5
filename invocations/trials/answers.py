"""Answers of trials: what a version has answered to written arguments, for the reviewer who wrote them.

They read what they have typed as it is. In what the version has answered personal data is masked, as everywhere in the console.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access.redaction import masked_view
from evidence.models import SnapshotKind
from evidence.problems import KeyUnavailable
from invocations.playground.value_reader import ValueReader
from invocations.replays.labels import NOTE, WHY
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from invocations.replays.models import Replay
    from kernel.principal import Principal
    from kernel.problems import Problem

READ_OWN = "A reviewer reads what a version answered to their own trial in the console."


@dataclass(slots=True)
class TrialAnswer:
    """``why``: it could not be run. ``arguments``: None when they are gone: erased, or kept no longer. ``unreadable``: why what is
    kept cannot be read. ``pointers``: the places of the result that do not match the output schema.
    """

    row: Replay
    arguments: dict[str, Any] | None = None
    why: StrOrPromise = ""
    unreadable: StrOrPromise = ""
    notes: list[StrOrPromise] = field(default_factory=list)
    problem: Problem | None = None
    pointers: list[str] = field(default_factory=list)
    has_result: bool = False
    data: Any = None
    warnings: list[str] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)


def read_trial(row: Replay, *, by: Principal) -> TrialAnswer:
    """The page that shows it also has what is decided about the version: it does without values that cannot be read."""
    reader = ValueReader([row.pk], reason=READ_OWN, by=by)
    answer, result = TrialAnswer(row), row.result
    kept: dict[str, Any] = {}
    try:
        written = reader.read(row.pk, SnapshotKind.INPUT)
        if written is not None:
            answer.arguments = written["arguments"]
        kept = reader.read(row.pk, SnapshotKind.OUTPUT) or {}
    except KeyUnavailable:
        answer.unreadable = WHY["key_unavailable"]
    why = result.get("why", "")
    answer.why = WHY.get(why, why)
    answer.notes = [NOTE.get(note, note) for note in result.get("notes", ())]
    if result.get("problem"):
        answer.problem = _restore_problem(result["problem"], kept.get("error", {}))
        answer.pointers = [str(masked_view(each)) for each in answer.problem.details.get("pointers", ())]
    if "data" in kept:
        assert row.version is not None
        answer.has_result, answer.data = True, masked_view(kept["data"], row.version.view.output_schema)
    answer.warnings = [str(masked_view(each)) for each in kept.get("warnings", ())]
    answer.artifacts = [str(masked_view(each["name"])) for each in kept.get("artifacts", ())]
    return answer


def _restore_problem(reason: str, said: dict[str, Any]) -> Problem:
    """What it says may be the version's own words."""
    words = {name: str(masked_view(said[name])) for name in ("detail", "remedy") if said.get(name)}
    return find_problem_class(reason)(
        words.get("detail", ""), details=said.get("details", {}), remedy=words.get("remedy", "")
    )
