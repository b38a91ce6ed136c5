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
from invocations.model_calls.model_facts import ESTIMATE, NOTHING_ANSWERED, PROVIDER, ModelReport, to_plain_name
from invocations.model_calls.token_counts import count_tokens
from llm.answers import ChatAnswer
from llm.prices import is_version_of
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from access.budgets.lines import BudgetLine
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_answers import ModelAnswer
    from invocations.model_calls.model_attempts import ModelAttempt
    from invocations.model_calls.model_runs import AskedRun
    from invocations.model_calls.sent_requests import SentRequest

OTHER_MODEL = "The provider was asked for the model {asked} and answered with {answered}."
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
    found = [find_share(each) for each in chain.asked]
    shares, mine = [each for each in found if each is not None], found[-1]
    counted = sum_usages(each.counted for each in shares)
    sent = [(request, each.demand) for each in chain.asked for request in each.sent]
    demand, cost_micros = current.demand, sum_known(each.cost_micros for each in shares) if shares else None
    answered_by = next((each.model for each in reversed(current.sent) if each.model), "")
    chat = answer if isinstance(answer, ChatAnswer) else None
    verdict = current.preflight.verdict
    surcharge_micros = verdict.price_micros if verdict is not None else 0
    return ModelReport(
        part=current.part,
        requests=chain.requests,
        attempts=list(map(describe_attempt, chain.asked, found)) if len(found) > 1 else [],
        apart=list_apart(asked.preflight, current.preflight, shares, surcharge_micros=surcharge_micros),
        counted=counted or Usage(requests=chain.requests),
        settled_by=name_counter(counted),
        reported=sum_usages(usage for request, _ in sent if (usage := request.reported) is not None),
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
        metered=compare_figures(mine) if mine is not None and not mine.counted.estimated else {},
    )


def describe_attempt(attempt: ModelAttempt, share: ModelShare | None) -> dict[str, object]:
    """What became of one model, and what it took where it did not answer and may have to be paid all the same."""
    if share is None or attempt.problem is None:
        return attempt.describe()
    took = {"input_tokens": share.counted.input_tokens, "output_tokens": share.counted.output_tokens}
    said = {"cost_micros": share.cost_micros, "counted_by": name_counter(share.counted)}
    return attempt.describe() | {"took": took | said}


def describe_other_model(report: ModelReport) -> list[str]:
    """For the caller, where a provider answers with another model than it was asked for. A dated name is a version of the same."""
    asked, answered = report.part.name, report.answered_by
    if not answered or answered == asked or is_version_of(answered, asked):
        return []
    return [OTHER_MODEL.format(asked=asked, answered=to_plain_name(answered))]


def name_counter(counted: Usage | None) -> str:
    if counted is None:
        return NOTHING_ANSWERED
    return ESTIMATE if counted.estimated else PROVIDER


def is_of(line: BudgetLine, preflight: Preflight) -> bool:
    return any(line.budget_id == each.budget_id for each in preflight.lines)


def list_apart(
    asked: Preflight, current: Preflight, shares: Sequence[ModelShare], *, surcharge_micros: int
) -> dict[UUID, CallUsage]:
    """What is taken of the budgets against which not all of the models count: what those took that do, or nothing."""
    apart: dict[UUID, CallUsage] = {}
    for line in asked.held_lines if asked.fallbacks else ():
        mine, answers = [each for each in shares if is_of(line, each.attempt.preflight)], is_of(line, current)
        if not mine and not answers:
            apart[line.budget_id] = NOTHING
        elif len(mine) < len(shares) or not answers:
            apart[line.budget_id] = CallUsage(
                bytes_out=None if answers else 0,
                tokens=sum(each.counted.tokens for each in mine),
                money=sum_known([surcharge_micros * answers, *(each.money for each in mine)]),
            )
    return apart


def compare_figures(share: ModelShare) -> dict[str, tuple[int, int]]:
    """What the provider has reported of each request, and what the hub itself counts: bytes, as tokens. Pictures and sounds are
    estimated too high to compare.
    """
    demand, reported, figures = share.attempt.demand, share.counted, {}
    if not demand.has_media and len(share.paid) == 1:
        figures["input"] = (reported.input_tokens, demand.counted_tokens)
    if output := sum(count_tokens(each.output_bytes) for each in share.paid):
        figures["output"] = (reported.output_tokens, output)
    if reported.charged_usd is not None:
        costs = [demand.prices.find_cost(each.count(demand), answered_by=each.model) for each in share.paid]
        if usd := sum(cost.usd for cost in costs if cost is not None) if None not in costs else 0:
            figures["money"] = (round(reported.charged_usd * BILLION), round(usd * BILLION))
    return figures


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Of several requests; None of none."""
    found = list(usages)
    return reduce(add, found) if found else None


def sum_known(amounts: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    found = list(amounts)
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(found) else None
