"""Answers of tries: what a call from the page of a tool has come to, for the person who made it.

They read what they have typed as it is. In what the tool has answered personal data is masked, as everywhere in the console.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access.redaction import masked_view
from evidence.models import SnapshotKind
from invocations.end.end_record import restore_problem
from invocations.playground.value_reader import ValueReader
from kernel.ids import decode

if TYPE_CHECKING:
    from invocations.models import Invocation
    from kernel.principal import Principal
    from kernel.problems import Problem

READ_OWN = "A person reads what a tool answered to their own try in the console."


@dataclass(slots=True)
class TryAnswer:
    """``arguments``: None when they are gone: erased, or kept no longer."""

    invocation: Invocation
    arguments: dict[str, Any] | None = None
    data: Any = None
    has_result: bool = False
    warnings: list[str] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    problem: Problem | None = None


def read_answer(invocation: Invocation, *, by: Principal) -> TryAnswer:
    reader = ValueReader([invocation.pk], reason=READ_OWN, by=by)
    answer = TryAnswer(invocation)
    sent = reader.read(invocation.pk, SnapshotKind.INPUT)
    if sent is not None:
        answer.arguments = sent["arguments"]
    if not invocation.is_final:
        return answer
    if invocation.reason:
        answer.problem = restore_problem(invocation, _mask_words(reader.read(invocation.pk, SnapshotKind.ERROR) or {}))
    output = reader.read(invocation.pk, SnapshotKind.OUTPUT)
    if output is not None:
        schema = invocation.version.view.output_schema if invocation.version is not None else None
        answer.has_result, answer.data = True, masked_view(output.get("data"), schema)
        answer.warnings = [str(masked_view(each)) for each in output.get("warnings", ())]
        # By addresses of the console: the link of the agent would open them for anybody, and as if the agent had read them.
        answer.artifacts = [each | {"pk": decode("art", each["id"])} for each in output.get("artifacts", ())]
    return answer


def _mask_words(error: dict[str, Any]) -> dict[str, Any]:
    """What a problem says: its words may be the tool's own."""
    return error | {name: str(masked_view(error[name])) for name in ("detail", "remedy") if error.get(name)}
