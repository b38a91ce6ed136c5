"""Policy oracle: do policies mean what the same rules mean in Cedar?"""

from __future__ import annotations

from random import Random

import pytest

from access.policies.verdict import evaluate_policies
from tests.oracles.cedar import Oracle
from tests.support import policies

NAMES = [*policies.VALUES, "group"]
SEEDS, DOCUMENTS, CALLS = 10, 25, 48  # 12,000 cases
ALWAYS_THERE = {"tool"}


def some_call(random: Random) -> dict[str, object]:
    """As a well-formed call, and now and then with something missing that should be there."""
    found = policies.call(random, NAMES)
    if random.random() < 0.2:
        for name in random.sample(sorted(set(found) - {"tool", "group"}), 2):
            found[name] = None
    return found


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_decision_and_the_rules_behind_it_are_those_of_cedar(seed: int) -> None:
    random = Random(seed)
    allowed = 0
    for _ in range(DOCUMENTS):
        document = policies.document(random, NAMES, random.randint(1, 14))
        policy, oracle = policies.compiled(document), Oracle(document)
        calls = [some_call(random) for _ in range(CALLS)]
        for call, (allow, decided), restricted in zip(
            calls, oracle.decisions(calls), oracle.restrictions(calls), strict=True
        ):
            verdict = evaluate_policies([policy], call)
            assert verdict.allowed is allow, (document, call)
            assert {ref.partition("#")[2] for ref in (verdict.permits if allow else verdict.forbids)} == decided
            others = {ref.partition("#")[2] for ref in verdict.rules} - decided
            assert others == restricted, (document, call)
            allowed += allow

    assert DOCUMENTS * CALLS * 0.1 < allowed < DOCUMENTS * CALLS * 0.9  # both answers are common


@pytest.mark.req("TOOLS-15")
def test_the_order_of_rules_means_nothing() -> None:
    random = Random(99)
    for _ in range(100):
        document = policies.document(random, NAMES, 10)
        turned = {"format": 1, "rules": random.sample(document["rules"], 10)}
        call = some_call(random)
        one, two = (
            evaluate_policies([policies.compiled(document)], call),
            evaluate_policies([policies.compiled(turned)], call),
        )

        assert (one.allowed, sorted(one.rules), one.limits, one.isolation, one.untrusted, one.obligations, one.price_micros) == (
            two.allowed, sorted(two.rules), two.limits, two.isolation, two.untrusted, two.obligations, two.price_micros,
        )  # fmt: skip
        assert one.capabilities == two.capabilities
        assert (one.consent and (one.consent.mode, one.consent.validity_s)) == (
            two.consent and (two.consent.mode, two.consent.validity_s)
        )
