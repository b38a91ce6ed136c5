"""Model settlement: what a call of a model has taken in the end.

What the provider reports counts. Where it reports nothing, or the answer was cut off, the hub's own estimate does, and says so. Of a
request that the provider refused nothing counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.model_calls.model_facts import ESTIMATE, NOTHING_ANSWERED, PROVIDER, ModelReport
from invocations.model_calls.token_counts import estimate_text
from invocations.problems import CallCancelled
from llm.answers import ChatAnswer
from llm.problems import ModelTimedOut
from llm.usage import Usage

if TYPE_CHECKING:
    from access.budgets.lines import BudgetLine
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_answers import ModelAnswer
    from invocations.model_calls.model_runs import AskedRun
    from kernel.problems import Problem
    from llm.answers import ChatDelta


class RunTally:
    """What has come of a run so far: enough to say what it took if it is cut off."""

    def __init__(self) -> None:
        self.requests = self.output_tokens = 0
        self.model = ""
        self.first_token_ms: int | None = None
        self.any_piece = False

    def begin_request(self) -> None:
        self.requests += 1

    def add(self, delta: ChatDelta) -> None:
        self.any_piece = True
        self.model = delta.model or self.model
        call = delta.tool_call
        self.output_tokens += estimate_text(delta.text) + (estimate_text(call.name + call.arguments) if call else 0)
        if delta.has_content and self.first_token_ms is None:
            self.first_token_ms = delta.elapsed_ms


def build_model_report(
    asked: AskedRun, tally: RunTally, answer: ModelAnswer | None, problem: Problem | None
) -> ModelReport:
    """``answer``: None where there is none, because of ``problem``."""
    chain, current = asked.chain, asked.chain.current
    demand = current.preflight.model_demand
    assert demand is not None
    requests = max(1, tally.requests)
    estimated = Usage(demand.input_tokens * requests, tally.output_tokens, requests=requests, estimated=True)
    reported = answer.usage if answer is not None and answer.usage is not None and answer.usage.is_metered else None
    maybe_paid = tally.any_piece or isinstance(problem, ModelTimedOut | CallCancelled)
    if reported is not None:
        counted, settled_by = reported, PROVIDER
    elif answer is not None or (chain.requests and maybe_paid):
        counted, settled_by = estimated, ESTIMATE
    else:
        counted, settled_by = Usage(requests=tally.requests), NOTHING_ANSWERED
    chat = answer if isinstance(answer, ChatAnswer) else None
    answered_by = answer.model if answer is not None else tally.model
    cost_micros = demand.prices.find_micros(counted, answered_by=answered_by)
    verdict = current.preflight.verdict
    return ModelReport(
        part=current.part,
        requests=chain.requests,
        attempts=[each.describe() for each in chain.asked] if len(chain.asked) > 1 else [],
        untouched=find_untouched_lines(asked.preflight, current.preflight),
        counted=counted,
        settled_by=settled_by,
        reported=reported,
        estimated=estimated,
        answered_by=answered_by,
        price="" if cost_micros is None else demand.prices.table.version,
        currency=demand.prices.table.currency,
        cost_micros=cost_micros,
        finish=str(chat.finish_reason) if chat is not None else "",
        surcharge_micros=verdict.price_micros if verdict is not None else 0,
        proposals=len(chat.proposals) if chat is not None else 0,
        first_token_ms=tally.first_token_ms,
    )


def find_untouched_lines(asked: Preflight, current: Preflight) -> list[BudgetLine]:
    """The budgets that only other models of the call count against."""
    if not asked.fallbacks:
        return []
    touched = {line.budget_id for line in current.lines}
    return [line for line in asked.held_lines if line.budget_id not in touched]
