"""Policy analysis: does the analysis find every difference between two policies, and none that is not there?"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from access.policies.clauses import LEVELS, MODES
from access.policies.impact import analysis, call_classes, spaces
from access.policies.impact.analysis import SILENT_DOCUMENT, analyse_change
from access.policies.verdict import Verdict, evaluate_policies
from tests.support import policies

# (attributes that the rules ask about): small enough to try every call there is.
SMALL = [
    ["tool", "dry_run", "model"],
    ["tool", "tags", "origin"],
    ["group", "tool", "side_effect"],
    ["hour", "origin", "model_compatible"],
    ["tool", "bytes_in", "client_app"],
    ["domains", "tags", "safety_class"],
    ["weekday", "agent_name", "dry_run"],
]
SIDE = {"tool": ["tags", "side_effect", "safety_class", "domains"]}  # what tool expressions ask about too


def every_call(names: list[str]) -> list[dict[str, Any]]:
    asked = sorted({*names, *(more for name in names for more in SIDE.get(name, []))} - {"group"} | {"tool"})
    few = {"side_effect": ["None", "Read", "Write"], "tags": policies.VALUES["tags"], "domains": [[], ["net"], ["fs"]]}
    values = [few.get(name, policies.VALUES[name]) if "tool" in names else policies.VALUES[name] for name in asked]
    calls = [policies.CALL | dict(zip(asked, chosen, strict=True)) for chosen in product(*values)]
    return [call | {"group": call["tool"].partition(".")[0]} for call in calls]


def allowed_with(verdict: Verdict) -> dict[str, Any]:
    """What a verdict says in each respect; for a call that is denied nothing but that."""
    if not verdict.allowed:
        return {"call": False}
    consent = verdict.consent
    return {
        "call": True,
        "consent": consent and (MODES.index(consent.mode), -consent.validity_s),
        "ceiling": (verdict.capabilities, tuple(sorted(verdict.limits.items()))),
        "isolation": (LEVELS.index(verdict.isolation), verdict.untrusted),
        "oblige": frozenset(str(each) for each in verdict.obligations),
        "price": verdict.price_micros,
        "degrade": verdict.degradation and (verdict.degradation.answered_by, verdict.degradation.tools),
    }


def wider(aspect: str, a: Any, b: Any) -> bool:
    """Whether b leaves at least what a leaves; written apart from the product's own comparison."""
    match aspect:
        case "call":
            return b or not a
        case "consent":
            return b is None or (a is not None and b[0] <= a[0] and b[1] <= a[1])
        case "isolation":
            return b[0] <= a[0] and (a[1] or not b[1])
        case "ceiling":
            (a_bound, a_limits), (b_bound, b_limits) = a, b
            roomy = b_bound is None or (a_bound is not None and a_bound & b_bound == a_bound)
            return roomy and all(dict(a_limits).get(name, 10**12) <= most for name, most in b_limits)
        case _:
            return bool(b <= a)


def direction(aspect: str, a: Any, b: Any) -> str:
    if a == b:
        return ""
    up, down = wider(aspect, a, b), wider(aspect, b, a)
    return "different" if not up and not down else "wider" if up else "narrower"


def tried(old: dict[str, Any], new: dict[str, Any], calls: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Every (aspect, direction) that trying all calls shows."""
    before, after = policies.compiled(old), policies.compiled(new)
    found = set()
    for call in calls:
        a, b = allowed_with(evaluate_policies([before], call)), allowed_with(evaluate_policies([after], call))
        found |= {(name, way) for name in a.keys() & b.keys() if (way := direction(name, a[name], b[name]))}
    return found


def edited(random: Random, document: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """With some rules changed, added or taken away."""
    rules = [dict(each) for each in document["rules"]]
    for number in range(random.randint(1, 3)):
        match random.randint(0, 2):
            case 0 if rules:
                rules.pop(random.randrange(len(rules)))
            case 1 if rules:
                index = random.randrange(len(rules))
                rules[index] = policies.rule(random, rules[index]["id"], names, policies.EFFECTS)
            case _:
                rules.append(policies.rule(random, f"n{number}", names, policies.EFFECTS))
    return {"format": 1, "rules": rules}


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize("names", SMALL, ids="-".join)
def test_what_it_finds_is_what_trying_every_call_finds(names: list[str]) -> None:
    random = Random("-".join(names))
    calls = every_call(names)
    differing = 0
    for _ in range(8):
        old = policies.document(random, names, random.randint(2, 7))
        new = edited(random, old, names)
        found = analyse_change(old, new)

        assert {(shift.aspect, shift.direction) for shift in found.shifts} == tried(old, new, calls), (old, new)
        assert found.complete
        differing += bool(found.shifts)

    assert differing


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize("names", SMALL, ids="-".join)
def test_a_dead_rule_is_one_without_which_every_call_is_decided_alike(names: list[str]) -> None:
    random = Random("dead" + "-".join(names))
    calls = every_call(names)
    for _ in range(3):
        document = policies.document(random, names, 6)
        dead = {each.rule for each in analyse_change(SILENT_DOCUMENT, document).dead}
        for rule in document["rules"]:
            rest = {"format": 1, "rules": [each for each in document["rules"] if each is not rule]}
            assert (rule["id"] in dead) is (not tried(document, rest, calls)), (document, rule)


@pytest.mark.req("TOOLS-31")
def test_every_witness_shows_what_is_said_of_it() -> None:
    random = Random(5)
    names = list(policies.VALUES)
    seen = 0
    for _ in range(30):
        old = policies.permits(*policies.document(random, names, 12)["rules"])
        new = edited(random, old, names)
        before, after = policies.compiled(old), policies.compiled(new)
        for shift in analyse_change(old, new).shifts:
            a, b = (allowed_with(evaluate_policies([policy], shift.witness)) for policy in (before, after))
            assert direction(shift.aspect, a[shift.aspect], b[shift.aspect]) == shift.direction
            seen += 1

    assert seen > 30


@pytest.mark.req("TOOLS-31")
def test_a_policy_does_not_differ_from_itself_in_another_order() -> None:
    random = Random(8)
    for _ in range(20):
        document = policies.document(random, list(policies.VALUES), 12)
        turned = {"format": 1, "rules": [rule | {"id": f"x{n}"} for n, rule in enumerate(reversed(document["rules"]))]}

        assert analyse_change(document, turned).shifts == []


@pytest.mark.req("TOOLS-31")
def test_a_witness_names_the_rules_on_both_sides() -> None:
    writes = {"id": "no-writes", "effect": "forbid", "when": {"side_effect": {"equals": "Write"}}}

    [shift] = analyse_change(policies.permits(writes), policies.permits()).shifts

    assert (shift.aspect, shift.direction) == ("call", "wider")
    assert (shift.old_rules, shift.new_rules) == (("no-writes",), ("all",))
    assert shift.witness["side_effect"] == "Write"
    assert (shift.before, shift.after) == ("denied", "allowed")


@pytest.mark.req("TOOLS-31")
def test_looking_at_each_changed_rule_by_itself_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_search = call_classes.find_differences

    def only_slices(*args: Any, only: Any = None, **more: Any) -> Any:
        if only is None:
            raise call_classes.TooManyClasses
        return whole_search(*args, only=only, **more)

    random = Random(3)
    names = list(policies.VALUES)
    shifts = 0
    for _ in range(25):
        old = policies.permits(*policies.document(random, names, 10)["rules"])
        new = edited(random, old, names)
        monkeypatch.setattr(analysis, "find_differences", whole_search)
        whole = analyse_change(old, new)
        monkeypatch.setattr(analysis, "find_differences", only_slices)
        found = analyse_change(old, new)
        assert found.sliced and found.complete and not whole.sliced
        assert {(s.aspect, s.direction) for s in found.shifts} == {(s.aspect, s.direction) for s in whole.shifts}
        shifts += len(whole.shifts)

    assert shifts > 20


@pytest.mark.req("TOOLS-31")
def test_a_slice_that_is_cut_is_named_and_what_was_found_in_it_is_true() -> None:
    random = Random(3)
    names = list(policies.VALUES)
    old, new = (policies.permits(*policies.document(random, names, 12)["rules"]) for _ in range(2))
    found = analyse_change(old, new, at_most=20)
    before, after = policies.compiled(old), policies.compiled(new)

    assert not found.complete
    assert set(found.unfinished) <= {rule["id"] for rule in [*old["rules"], *new["rules"]]}
    assert found.shifts
    for shift in found.shifts:
        a, b = (allowed_with(evaluate_policies([policy], shift.witness)) for policy in (before, after))
        assert direction(shift.aspect, a[shift.aspect], b[shift.aspect]) == shift.direction


@pytest.mark.req("TOOLS-31")
def test_more_differences_than_are_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MAX_SHIFTS", 2)
    rules = [{"id": f"f{n}", "effect": "forbid", "when": {"bytes_in": {"equals": n}}} for n in range(5)]

    found = analyse_change(policies.permits(), policies.permits(*rules))

    assert (len(found.shifts), found.more) == (2, 3)


@pytest.mark.req("TOOLS-31")
def test_a_condition_with_too_many_alternatives_is_counted_without_being_made() -> None:
    from access.policies import conditions

    wide = conditions.AnyOf(tuple(conditions.AttributeTest("tool", "equals", f"a.b.t{n}") for n in range(50)))
    condition = conditions.AllOf((wide,) * 12)

    assert spaces.count_boxes(condition) == 50**12
