"""Model settlement: what a call of a model has taken in the end.

What the provider reports counts, request by request and model by model, each at its own price. Where it reports nothing, or the answer
was cut off, the hub's own estimate does, and says so. Of a request that the provider refused nothing counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from access.budgets.ledger import NOTHING, CallUsage
from invocations.model_calls.model_facts import ESTIMATE, NOTHING_ANSWERED, PROVIDER, ModelReport
from invocations.model_calls.token_counts import count_tokens
from llm.answers import ChatAnswer
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from access.budgets.lines import BudgetLine
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_answers import ModelAnswer
    from invocations.model_calls.model_attempts import ModelAttempt
    from invocations.model_calls.model_demand import ModelDemand
    from invocations.model_calls.model_runs import AskedRun
    from invocations.model_calls.sent_requests import SentRequest

BILLION = 1_000_000_000  # the costs of one call are compared in billionths of a dollar


@dataclass(frozen=True, slots=True)
class ModelShare:
    """What one model of a call has taken. ``cost_micros``: None where what answered has no price; ``money`` is None where one was
    reserved for all the same, and then that counts.
    """

    attempt: ModelAttempt
    paid: Sequence[SentRequest]
    counted: Usage
    cost_micros: int | None
    money: int | None

    @property
    def settled_by(self) -> str:
        return ESTIMATE if self.counted.estimated else PROVIDER

    @property
    def tokens(self) -> int:
        return self.counted.input_tokens + self.counted.output_tokens

    def counts_against(self, line: BudgetLine) -> bool:
        return is_of(line, self.attempt.preflight)


def find_share(attempt: ModelAttempt) -> ModelShare | None:
    """None where nothing was sent to the model, or the provider has only refused."""
    demand, paid = attempt.demand, [each for each in attempt.sent if each.may_cost]
    if not paid:
        return None
    usages = [demand.add_media(each.count(demand)) for each in paid]
    costs = [demand.prices.find_cost(usage, answered_by=each.model) for usage, each in zip(usages, paid, strict=True)]
    micros = demand.prices.sum_micros(costs)
    unpriced = 0 if demand.cost_micros is None else None
    return ModelShare(attempt, paid, reduce(add, usages), micros, unpriced if micros is None else micros)


def build_model_report(asked: AskedRun, answer: ModelAnswer | None, *, first_token_ms: int | None) -> ModelReport:
    """``answer``: None where there is none."""
    chain, current = asked.chain, asked.chain.current
    shares = [share for each in chain.asked if (share := find_share(each)) is not None]
    mine = next((each for each in shares if each.attempt is current), None)
    counted = sum_usages(each.counted for each in shares)
    if counted is None:
        counted, settled_by = Usage(requests=chain.requests), NOTHING_ANSWERED
    else:
        settled_by = ESTIMATE if counted.estimated else PROVIDER
    sent = [(request, each.demand) for each in chain.asked for request in each.sent]
    costs, demand = [each.cost_micros for each in shares], current.demand
    cost_micros = None if not costs or None in costs else sum(cost for cost in costs if cost is not None)
    answered_by = next((each.model for each in reversed(current.sent) if each.model), "")
    chat = answer if isinstance(answer, ChatAnswer) else None
    verdict = current.preflight.verdict
    surcharge_micros = verdict.price_micros if verdict is not None else 0
    return ModelReport(
        part=current.part,
        requests=chain.requests,
        attempts=[describe_attempt(each, shares) for each in chain.asked] if len(chain.asked) > 1 else [],
        apart=list_apart(asked.preflight, current.preflight, shares, surcharge_micros=surcharge_micros),
        counted=counted,
        settled_by=settled_by,
        reported=sum_usages(found for request, _ in sent if (found := request.reported) is not None),
        estimated=sum_usages(request.estimate(demand) for request, demand in sent),
        answered_by=answered_by,
        stood_in=current.tool if answer is not None and current.tool != asked.invocation.tool else "",
        price="" if cost_micros is None else demand.prices.table.version,
        currency=demand.prices.table.currency,
        cost_micros=cost_micros,
        is_unpriced_answer=any(each.money is None for each in shares),
        finish=str(chat.finish_reason) if chat is not None else "",
        surcharge_micros=surcharge_micros,
        proposals=len(chat.proposals) if chat is not None else 0,
        first_token_ms=first_token_ms,
        prefix_tokens=demand.prefix_tokens,
        metered=compare_figures(demand, mine.paid) if mine is not None and mine.settled_by == PROVIDER else {},
    )


def describe_attempt(attempt: ModelAttempt, shares: Iterable[ModelShare]) -> dict[str, object]:
    """What became of one model, and what it took where it did not answer and may have to be paid all the same."""
    share = next((each for each in shares if each.attempt is attempt), None)
    if share is None or attempt.problem is None:
        return attempt.describe()
    took = {"input_tokens": share.counted.input_tokens, "output_tokens": share.counted.output_tokens}
    return attempt.describe() | {"took": took | {"cost_micros": share.cost_micros, "counted_by": share.settled_by}}


def is_of(line: BudgetLine, preflight: Preflight) -> bool:
    return any(line.budget_id == each.budget_id for each in preflight.lines)


def list_apart(
    asked: Preflight, current: Preflight, shares: Sequence[ModelShare], *, surcharge_micros: int
) -> dict[UUID, CallUsage]:
    """What is taken of the budgets against which not all of the models count: what those took that do, or nothing."""
    apart: dict[UUID, CallUsage] = {}
    for line in asked.held_lines if asked.fallbacks else ():
        mine, answers = [each for each in shares if each.counts_against(line)], is_of(line, current)
        if not mine and not answers:
            apart[line.budget_id] = NOTHING
        elif len(mine) < len(shares) or not answers:
            moneys = [each.money for each in mine]
            apart[line.budget_id] = CallUsage(
                bytes_out=None if answers else 0,
                tokens=sum(each.tokens for each in mine),
                money=None
                if None in moneys
                else sum(money for money in moneys if money is not None) + surcharge_micros * answers,
            )
    return apart


def compare_figures(demand: ModelDemand, paid: Sequence[SentRequest]) -> dict[str, tuple[int, int]]:
    """What was reported, and what the hub itself counts: bytes, as tokens. Pictures and sounds are estimated too high to compare."""
    reported = sum_usages(each.reported for each in paid if each.reported is not None)
    assert reported is not None
    figures = {}
    if not demand.has_media and len(paid) == 1:
        figures["input"] = (reported.input_tokens, demand.counted_tokens)
    if output := sum(count_tokens(each.output_bytes) for each in paid):
        figures["output"] = (reported.output_tokens, output)
    if reported.charged_usd is not None:
        usages = [(each.reported, each.model) for each in paid if each.reported is not None]
        costs = [demand.prices.find_cost(usage, answered_by=model) for usage, model in usages]
        if usd := sum(cost.usd for cost in costs if cost is not None) if None not in costs else 0:
            figures["money"] = (round(reported.charged_usd * BILLION), round(usd * BILLION))
    return figures


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Of several requests; None of none."""
    found = list(usages)
    return reduce(add, found) if found else None
