"""Model settlement: what a call of a model has taken in the end.

What the provider reports counts, request by request. Where it reports nothing, or the answer was cut off, the hub's own estimate
does, and says so. Of a request that the provider refused nothing counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from invocations.model_calls.model_facts import ESTIMATE, NOTHING_ANSWERED, PROVIDER, ModelReport
from invocations.model_calls.token_counts import count_tokens
from invocations.problems import CallCancelled
from llm.answers import ChatAnswer
from llm.problems import ModelTimedOut
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from access.budgets.lines import BudgetLine
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_answers import ModelAnswer
    from invocations.model_calls.model_demand import ModelDemand
    from invocations.model_calls.model_runs import AskedRun
    from kernel.problems import Problem
    from llm.answers import ChatDelta

BILLION = 1_000_000_000  # the costs of one call are compared in billionths of a dollar


@dataclass(slots=True)
class SentRequest:
    """What has come of one request. ``usage``: the last that the provider reported; ``whole``: its answer came to the end."""

    output_bytes: int = 0
    usage: Usage | None = None
    any_piece: bool = False
    whole: bool = False

    def add(self, delta: ChatDelta) -> None:
        self.any_piece = True
        call = delta.tool_call
        self.output_bytes += len(delta.text.encode()) + (len((call.name + call.arguments).encode()) if call else 0)
        self.usage = delta.usage or self.usage
        self.whole = self.whole or delta.finish_reason is not None

    @property
    def reported(self) -> Usage | None:
        """None where the provider has said nothing, or only zeros."""
        return self.usage if self.usage is not None and self.usage.is_metered else None

    def estimate(self, demand: ModelDemand) -> Usage:
        return demand.estimate(count_tokens(self.output_bytes))

    def count(self, demand: ModelDemand) -> Usage:
        """What is settled. What was reported before a request was cut off is the least that it took."""
        reported, estimated = self.reported, self.estimate(demand)
        if reported is None or self.whole:
            return reported or estimated
        most_input = max(reported.input_tokens, estimated.input_tokens)
        most_output = max(reported.output_tokens, estimated.output_tokens)
        return replace(reported, input_tokens=most_input, output_tokens=most_output, estimated=True)


class RunTally:
    """What has come of a run so far: enough to say what it took if it is cut off."""

    def __init__(self) -> None:
        self.sent: list[SentRequest] = []
        self.model = ""
        self.first_token_ms: int | None = None

    def begin_request(self) -> None:
        self.sent.append(SentRequest())

    def add(self, delta: ChatDelta) -> None:
        self.sent[-1].add(delta)
        self.model = delta.model or self.model
        if delta.has_content and self.first_token_ms is None:
            self.first_token_ms = delta.elapsed_ms

    def end_request(self, answer: ModelAnswer) -> None:
        """Of one whose answer comes in one piece."""
        self.sent[-1].usage, self.sent[-1].whole = answer.usage, True
        self.model = answer.model or self.model

    def find_paid(self, problem: Problem | None) -> list[SentRequest]:
        """Those that somebody may have to pay for: of the others the provider has said nothing but that it refuses."""
        open_at_end = isinstance(problem, ModelTimedOut | CallCancelled)
        return [
            each
            for each in self.sent
            if each.whole or each.any_piece or each.reported or (open_at_end and each is self.sent[-1])
        ]


def build_model_report(
    asked: AskedRun, tally: RunTally, answer: ModelAnswer | None, problem: Problem | None
) -> ModelReport:
    """``answer``: None where there is none, because of ``problem``."""
    chain, current = asked.chain, asked.chain.current
    demand = current.preflight.model_demand
    assert demand is not None
    paid = tally.find_paid(problem) if chain.requests else []
    counted = sum_usages(demand.add_media(each.count(demand)) for each in paid)
    if counted is None:
        counted, settled_by = Usage(requests=chain.requests), NOTHING_ANSWERED
    else:
        settled_by = ESTIMATE if counted.estimated else PROVIDER
    chat = answer if isinstance(answer, ChatAnswer) else None
    cost_micros = demand.prices.find_micros(counted, answered_by=tally.model)
    verdict = current.preflight.verdict
    return ModelReport(
        part=current.part,
        requests=chain.requests,
        attempts=[each.describe() for each in chain.asked] if len(chain.asked) > 1 else [],
        untouched=find_untouched_lines(asked.preflight, current.preflight),
        counted=counted,
        settled_by=settled_by,
        reported=sum_usages(each.reported for each in paid if each.reported is not None),
        estimated=sum_usages(each.estimate(demand) for each in tally.sent),
        answered_by=tally.model,
        stood_in=current.tool if answer is not None and current.tool != asked.invocation.tool else "",
        price="" if cost_micros is None else demand.prices.table.version,
        currency=demand.prices.table.currency,
        cost_micros=cost_micros,
        finish=str(chat.finish_reason) if chat is not None else "",
        surcharge_micros=verdict.price_micros if verdict is not None else 0,
        proposals=len(chat.proposals) if chat is not None else 0,
        first_token_ms=tally.first_token_ms,
        prefix_tokens=demand.prefix_tokens,
        metered=compare_figures(demand, paid, answered_by=tally.model) if settled_by == PROVIDER else {},
    )


def find_untouched_lines(asked: Preflight, current: Preflight) -> list[BudgetLine]:
    """The budgets that only other models of the call count against."""
    if not asked.fallbacks:
        return []
    touched = {line.budget_id for line in current.lines}
    return [line for line in asked.held_lines if line.budget_id not in touched]


def compare_figures(demand: ModelDemand, paid: list[SentRequest], *, answered_by: str) -> dict[str, tuple[int, int]]:
    """What was reported, and what the hub itself counts: bytes, as tokens. Pictures and sounds are estimated too high to compare."""
    reported = sum_usages(each.reported for each in paid if each.reported is not None)
    assert reported is not None
    figures = {}
    if not demand.has_media and len(paid) == 1:
        figures["input"] = (reported.input_tokens, demand.counted_tokens)
    if output := sum(count_tokens(each.output_bytes) for each in paid):
        figures["output"] = (reported.output_tokens, output)
    if reported.charged_usd is not None and (cost := demand.prices.find_cost(reported, answered_by=answered_by)):
        figures["money"] = (round(reported.charged_usd * BILLION), round(cost.usd * BILLION))
    return figures


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Of several requests; None of none."""
    found = list(usages)
    return reduce(add, found) if found else None
