"""Policy verdict: what do layers of policy decide together, and do they fail closed?"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from access.policies.compiler import BUILTIN, MAX_TOOLS, CompiledPolicy
from access.policies.verdict import evaluate_policies, policy_hash, policy_label
from tests.support import policies
from tests.support.policies import CALL, compiled, permits
from unitools.capabilities import Capabilities


def rule(effect: str, id: str = "r", when: dict[str, Any] | None = None, **says: Any) -> dict[str, Any]:
    return {"id": id, "effect": effect, "when": when or {}, **says}


@pytest.mark.req("TOOLS-15")
def test_nothing_is_permitted_by_a_policy_without_rules() -> None:
    verdict = evaluate_policies([compiled({"format": 1, "rules": []})], CALL)

    assert not verdict.allowed
    assert verdict.denied_by == [("tenant@1", "")]
    assert verdict.explain() == ["No rule of tenant@1 permits this call."]


@pytest.mark.req("TOOLS-15")
def test_a_forbid_wins_over_every_permit_and_is_named() -> None:
    policy = compiled(permits(rule("forbid", "no-shop", {"tool": {"matches": "shop.*"}}), rule("permit", "shop")))
    verdict = evaluate_policies([BUILTIN, policy], CALL)

    assert verdict.denied_by == [("tenant@1", "no-shop")]
    assert verdict.forbids == verdict.rules[-1:] == ["tenant@1#no-shop"]
    assert verdict.explain() == ["The rule no-shop of tenant@1 forbids this call."]


@pytest.mark.req("TOOLS-15")
def test_every_layer_must_permit() -> None:
    hub = compiled(permits(), "hub@3")
    tenant = compiled({"format": 1, "rules": [rule("permit", when={"origin": {"equals": "llm"}})]})

    assert evaluate_policies([hub, tenant], CALL | {"origin": "llm"}).allowed
    assert evaluate_policies([hub, tenant], CALL).denied_by == [("tenant@1", "")]
    assert evaluate_policies([tenant, hub], CALL).denied_by == [("tenant@1", "")]


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("effect", "says"),
    [
        ("forbid", {}),
        ("consent", {"consent": {"mode": "once"}}),
        ("ceiling", {"limits": {"timeout_ms": 5}}),
        ("isolation", {"level": "cold"}),
        ("isolation", {"untrusted": True}),
        ("oblige", {"obligations": [{"action": "redact", "pointer": "/a"}]}),
        ("price", {"amount_micros": 7}),
    ],
)
def test_what_restricts_holds_where_an_attribute_is_unknown_and_says_so(effect: str, says: dict[str, Any]) -> None:
    verdict = evaluate_policies([compiled(permits(rule(effect, "r", {"model": {"equals": "m"}}, **says)))], CALL)

    assert verdict.unknown == [("tenant@1#r", "model")]
    assert "tenant@1#r" in verdict.rules
    assert "The rule tenant@1#r could not be decided: the call has no model." in verdict.explain()


@pytest.mark.req("TOOLS-15")
def test_what_permits_does_not_hold_where_an_attribute_is_unknown_and_says_so() -> None:
    verdict = evaluate_policies(
        [compiled({"format": 1, "rules": [rule("permit", "r", {"model": {"equals": "m"}})]})], CALL
    )

    assert not verdict.allowed
    assert verdict.unknown == [("tenant@1#r", "model")]


@pytest.mark.req("TOOLS-15")
def test_an_unknown_attribute_that_cannot_change_the_answer_is_no_unknown() -> None:
    elsewhere = rule("forbid", "r", {"model": {"equals": "m"}, "origin": {"equals": "llm"}})

    verdict = evaluate_policies([compiled(permits(elsewhere))], CALL)

    assert verdict.allowed
    assert verdict.unknown == []


@pytest.mark.req("TOOLS-15")
def test_a_rule_can_ask_whether_an_attribute_is_there() -> None:
    policy = compiled(permits(rule("forbid", "r", {"model": {"has": True, "equals": "m"}})))

    assert evaluate_policies([policy], CALL).allowed
    assert evaluate_policies([policy], CALL | {"model": None}).allowed
    assert not evaluate_policies([policy], CALL | {"model": "m"}).allowed


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("wrong", [{"hour": "noon"}, {"tags": 5}, {"tool": ["shop"]}])
def test_an_attribute_of_another_type_fails_closed(wrong: dict[str, Any]) -> None:
    asks = {"hour": {"at_least": 3}, "tags": {"contains": "a"}, "tool": {"matches": "shop.*"}}
    for name in wrong:
        forbid = compiled(permits(rule("forbid", "r", {name: asks[name]})))
        permit = compiled({"format": 1, "rules": [rule("permit", "r", {name: asks[name]})]})

        assert not evaluate_policies([forbid], CALL | wrong).allowed
        assert not evaluate_policies([permit], CALL | wrong).allowed


@pytest.mark.req("TOOLS-16")
def test_ceilings_meet_and_limits_are_the_least_of_all_layers() -> None:
    hub = compiled(
        permits(rule("ceiling", "c", capabilities={"tmp": 4096}, limits={"timeout_ms": 9000, "max_bytes_in": 50})),
        "hub@1",
    )
    tenant = compiled(
        permits(rule("ceiling", "c", capabilities={"tmp": 1024}), rule("ceiling", "d", limits={"timeout_ms": 100}))
    )
    verdict = evaluate_policies([hub, tenant], CALL)

    assert verdict.capabilities == Capabilities.from_json({"tmp": 1024})
    assert verdict.limits == {"timeout_ms": 100, "max_bytes_in": 50}
    assert evaluate_policies([tenant, hub], CALL).capabilities == verdict.capabilities
    assert evaluate_policies([compiled(permits())], CALL).capabilities is None


@pytest.mark.req("TOOLS-16", "TOOLS-25")
def test_the_strongest_isolation_and_all_obligations_hold() -> None:
    mask, other = ({"action": "redact", "pointer": p} for p in ("/a", "/b"))
    hub = compiled(permits(rule("isolation", "i", level="single"), rule("oblige", "o", obligations=[mask])), "hub@1")
    tenant = compiled(permits(rule("isolation", "i", level="fresh"), rule("oblige", "o", obligations=[mask, other])))
    verdict = evaluate_policies([hub, tenant], CALL)

    assert verdict.isolation == "single"
    assert verdict.obligations == [mask, other]
    assert evaluate_policies([compiled(permits())], CALL).isolation == "shared"


@pytest.mark.req("TOOLS-17")
def test_code_that_any_rule_calls_untrusted_is_untrusted() -> None:
    hub = compiled(permits(rule("isolation", "i", untrusted=True), rule("isolation", "j", level="fresh")), "hub@1")
    tenant = compiled(permits(rule("isolation", "i", level="single")))

    assert evaluate_policies([hub, tenant], CALL).untrusted
    assert evaluate_policies([tenant, hub], CALL).untrusted
    assert evaluate_policies([hub, tenant], CALL).isolation == "single"
    assert not evaluate_policies([tenant], CALL).untrusted


@pytest.mark.req("TOOLS-10")
def test_the_price_is_the_highest_of_a_layer_and_layers_add_up() -> None:
    hub = compiled(permits(rule("price", "a", amount_micros=10), rule("price", "b", amount_micros=30)), "hub@1")
    tenant = compiled(permits(rule("price", "a", amount_micros=5)))

    assert evaluate_policies([hub, tenant], CALL).price_micros == 35


@pytest.mark.req("TOOLS-19")
def test_the_strictest_demand_for_consent_holds() -> None:
    policy = compiled(
        permits(
            rule("consent", "a", consent={"mode": "standing", "validity_s": 100}),
            rule("consent", "b", consent={"mode": "once", "validity_s": 5000}),
        )
    )
    demand = evaluate_policies([policy], CALL).consent

    assert demand is not None
    assert (demand.mode, demand.validity_s, demand.rules) == ("once", 100, ("tenant@1#a", "tenant@1#b"))


@pytest.mark.req("TOOLS-15")
def test_a_policy_that_cannot_be_evaluated_allows_nothing_and_says_so() -> None:
    verdict = evaluate_policies([BUILTIN, CompiledPolicy("tenant@7", "sha256:0", broken="its format is 2.")], CALL)

    assert not verdict.allowed
    assert verdict.explain() == ["tenant@7 cannot be evaluated: its format is 2."]


@pytest.mark.req("TOOLS-15", "TOOLS-16")
def test_while_the_hub_has_no_policy_what_is_granted_runs_in_a_narrow_sandbox() -> None:
    verdict = evaluate_policies([BUILTIN], CALL)

    assert verdict.allowed
    files = [{"path": "/data", "actions": ["create", "delete", "list", "read", "write"]}]
    within = {"tmp": 32 * 1024 * 1024, "secrets": ["*"], "fs": files}
    assert verdict.capabilities == Capabilities.from_json(within)
    assert verdict.limits == {
        "timeout_ms": 30_000, "memory_bytes": 512 * 1024 * 1024, "max_bytes_in": 1_048_576, "max_bytes_out": 1_048_576,
    }  # fmt: skip
    assert verdict.explain() == ["It is permitted by builtin@2#all."]


@pytest.mark.req("TOOLS-10")
def test_versions_are_named_and_hashed_in_the_order_of_the_layers() -> None:
    hub, tenant = compiled(permits(), "hub@3"), compiled(permits(rule("forbid")), "tenant@7")

    assert policy_label([hub, tenant]) == "hub@3 tenant@7"
    assert policy_hash([hub, tenant]) != policy_hash([tenant, hub])
    assert policy_hash([hub, tenant]) == policy_hash([compiled(permits(), "hub@9"), tenant])


@pytest.mark.req("TOOLS-15")
def test_what_is_kept_for_a_tool_changes_no_decision() -> None:
    """Rules that cannot concern a tool are left out for it; the answer is that of all rules."""
    random = Random(4)
    names = [*policies.VALUES, "group"]
    for _ in range(40):
        policy = compiled(policies.document(random, names, 12))
        for _ in range(20):
            call = policies.call(random, names)
            kept = {rule.ref for rule, asked in policy.candidates(call) if asked(call) is not False}
            assert kept == {rule.ref for rule in policy.rules if rule.whole(call) is not False}


@pytest.mark.req("TOOLS-15")
def test_only_so_many_tools_are_kept() -> None:
    policy = compiled(permits(rule("forbid", "r", {"tool": {"matches": "shop.*"}})))
    for number in range(MAX_TOOLS + 10):
        evaluate_policies([policy], CALL | {"tool": f"a.b.t{number}", "group": "a"})

    assert len(policy._by_tool) <= MAX_TOOLS
    assert not evaluate_policies([policy], CALL).allowed


@pytest.mark.req("TOOLS-15")
def test_what_is_kept_for_one_tool_is_not_used_for_a_call_that_describes_it_otherwise() -> None:
    about = {"tags": {"contains": "new"}, "side_effect": {"equals": "Read"}}
    policy = compiled(permits(rule("forbid", "no-new", about)))
    says = CALL | {"tags": ["new"]}

    assert evaluate_policies([policy], says).forbids == ["tenant@1#no-new"]
    assert evaluate_policies([policy], CALL).allowed
    assert evaluate_policies([policy], says | {"side_effect": "Write"}).allowed
    assert evaluate_policies([policy], says | {"tags": "new"}).forbids == ["tenant@1#no-new"]  # not a list: asked whole
    assert evaluate_policies([policy], says | {"side_effect": None}).unknown == [("tenant@1#no-new", "side_effect")]
    assert not evaluate_policies([policy], {name: value for name, value in says.items() if name != "domains"}).allowed


@pytest.mark.req("LLM-14")
def test_a_call_of_a_model_gets_the_fewest_tools_and_the_model_whose_rule_comes_first_by_name() -> None:
    rules = [
        rule("degrade", "b", answered_by="model.b.small"),
        rule("degrade", "a", tools="read_only", answered_by="model.a.small"),
        rule("degrade", "c", tools="none"),
    ]
    verdicts = [evaluate_policies([compiled(permits(*each), "hub@1")], CALL) for each in (rules, rules[::-1])]

    for verdict in verdicts:
        less = verdict.degradation
        assert less is not None
        assert (less.answered_by, less.tools, less.rules) == (
            "model.a.small",
            "none",
            ("hub@1#a", "hub@1#b", "hub@1#c"),
        )
        assert any("is answered by model.a.small and shows no tools" in each for each in verdict.explain())
