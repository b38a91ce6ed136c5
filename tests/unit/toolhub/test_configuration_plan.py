"""Configuration plan: does a plan say what would change, and nothing else? Pure: two documents, no database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.canonical import encode_hash_input
from toolhub.configuration import plan
from toolhub.configuration.document import SECTIONS, build_document, read_document
from toolhub.configuration.plan import Action, ConfigurationPlan, compare_entries
from toolhub.configuration.sentences import describe_unchanged

if TYPE_CHECKING:
    import pytest

    from toolhub.configuration.document import ConfigurationEntry, Entries
    from toolhub.configuration.plan import ConfigurationChange

NAMES = st.sampled_from(["a", "b", "c"])
CONDITIONS: st.SearchStrategy[Any] = st.sampled_from([(), (True,), (1,)]).map(
    lambda values: [{"pointer": "/a", "op": "equals", "value": value} for value in values]
)
MOMENTS = [None, "2090-01-01T00:00:00Z", "2090-01-01T01:00:00+01:00", "2091-01-01T00:00:00.5Z"]
SAID: dict[str, st.SearchStrategy[Any]] = {
    "agent": NAMES | st.just("*"),
    "tools": st.sampled_from(["a.*", "*", "tag:x | a.*"]),
    "reason": st.just("why"),
}
MAY_SAY: dict[str, st.SearchStrategy[Any]] = {
    "calls_limit": st.integers(0, 2),
    "conditions": CONDITIONS,
    "expires_at": st.sampled_from(MOMENTS),
}
GRANT = st.fixed_dictionaries(SAID, optional=MAY_SAY)
BUDGET = st.fixed_dictionaries(
    {
        "scope": st.just("agent"),
        "agent": NAMES,
        "dimension": st.sampled_from(["calls", "concurrency"]),
        "amount": st.integers(0, 3),
    }
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "format": st.just(1),
        "agents": st.lists(
            st.fixed_dictionaries({"name": NAMES, "disabled": st.booleans()}),
            unique_by=lambda each: each["name"],
            max_size=3,
        ),
        "grants": st.lists(GRANT, max_size=5),
        "budgets": st.lists(BUDGET, unique_by=lambda each: (each["agent"], each["dimension"]), max_size=4),
        "members": st.lists(
            st.fixed_dictionaries(
                {"user": NAMES, "roles": st.lists(st.sampled_from(["owner", "auditor"]), min_size=1, unique=True)}
            ),
            unique_by=lambda each: each["user"],
            max_size=3,
        ),
    }
).map(lambda document: read_document(document).entries)


def after(current: Entries, changes: list[ConfigurationChange]) -> Entries:
    """What there is once the changes were made."""
    found: dict[str, list[ConfigurationEntry]] = {name: list(entries) for name, entries in current.items()}
    for change in changes:
        if change.action is not Action.SAME and change.current is not None:
            found[change.section].remove(change.current)
        if change.action in (Action.CREATE, Action.CHANGE) and change.wanted is not None:
            fields = (change.current.fields if change.current else {}) | change.wanted.fields
            found[change.section].append(replace(change.wanted, fields=fields))
    return found


def said(entries: Entries) -> dict[str, list[str]]:
    document = build_document("x", entries)
    return {name: sorted(map(repr, document.get(name, []))) for name in SECTIONS}


@given(DOCUMENTS)
@settings(deadline=None)
def test_nothing_differs_from_itself(entries: Entries) -> None:
    changes = compare_entries(entries, entries, SECTIONS)

    assert {change.action for change in changes} <= {Action.SAME}
    assert ConfigurationPlan("ten_x", changes).is_empty


@given(DOCUMENTS, DOCUMENTS)
@settings(deadline=None)
def test_with_pruning_there_is_afterwards_what_the_file_says(current: Entries, wanted: Entries) -> None:
    made = after(current, compare_entries(current, wanted, SECTIONS))

    assert said(made) == said(wanted)
    assert ConfigurationPlan("ten_x", compare_entries(made, wanted, SECTIONS)).is_empty


@given(DOCUMENTS, DOCUMENTS)
@settings(deadline=None)
def test_without_pruning_nothing_ends_and_a_second_time_nothing_changes(current: Entries, wanted: Entries) -> None:
    changes = compare_entries(current, wanted)
    made = after(current, changes)

    assert Action.END not in {change.action for change in changes}
    assert ConfigurationPlan("ten_x", compare_entries(made, wanted)).is_empty


@given(DOCUMENTS, DOCUMENTS, st.randoms())
@settings(deadline=None)
def test_order_means_nothing(current: Entries, wanted: Entries, random: Any) -> None:
    def shuffled(entries: Entries) -> Entries:
        return {name: random.sample(rows, len(rows)) for name, rows in entries.items()}

    one = ConfigurationPlan("ten_x", compare_entries(current, wanted, SECTIONS))
    other = ConfigurationPlan("ten_x", compare_entries(shuffled(current), shuffled(wanted), SECTIONS))

    assert one.digest == other.digest


@given(DOCUMENTS, DOCUMENTS)
@settings(deadline=None)
def test_before_and_after_have_the_fields_that_differ(current: Entries, wanted: Entries) -> None:
    for change in compare_entries(current, wanted, SECTIONS):
        if change.action is Action.CHANGE:
            assert change.before is not None
            assert change.after is not None
            assert set(change.before) == set(change.after) != set()
            assert all(repr(change.before[name]) != repr(change.after[name]) for name in change.after)
        assert change.sentence


@given(DOCUMENTS)
@settings(deadline=None)
def test_what_is_written_is_read_as_the_same(entries: Entries) -> None:
    again = read_document(build_document("x", entries)).entries

    assert said(again) == said(entries)


def test_a_plan_of_another_tenant_has_another_digest() -> None:
    wanted = read_document({"format": 1, "agents": [{"name": "a"}]}).entries
    changes = compare_entries({}, wanted)

    assert ConfigurationPlan("ten_a", changes).digest != ConfigurationPlan("ten_b", changes).digest


def grants_for_everybody(paths: range) -> list[ConfigurationEntry]:
    """Of one identity: all of them are about the same agent and tools."""
    given = [
        {"agent": "*", "tools": "*", "reason": "why", "capabilities": {"fs": [{"path": f"/p{n}", "actions": ["read"]}]}}
        for n in paths
    ]
    return read_document({"format": 1, "grants": given}).entries["grants"]


def test_pairing_what_has_one_identity_takes_as_long_as_there_are_many_and_not_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = []

    def counted(value: Any) -> tuple[str, bytes]:
        looked_at.append(value)
        return encode_hash_input(value)

    monkeypatch.setattr(plan, "encode_hash_input", counted)
    counts = []
    for many in (20, 40):
        looked_at.clear()
        changes = compare_entries(
            {"grants": grants_for_everybody(range(many))}, {"grants": grants_for_everybody(range(many, 2 * many))}
        )
        assert [change.action for change in changes] == [Action.CHANGE] * many
        counts.append(len(looked_at))
    assert counts[1] <= 2 * counts[0]


def test_what_stays_is_named_by_section_and_twenty_at_most() -> None:
    document = {"format": 1, "agents": [{"name": f"a{n:02}"} for n in range(23)]}
    current = read_document(document | {"grants": [{"agent": "a00", "tools": "b.*", "reason": "why"}]}).entries
    left = compare_entries(current, {"agents": [], "grants": []}, SECTIONS)

    agents, grants = describe_unchanged(left)

    assert "a19 and 3 more. Add `prune: [agents]`" in agents
    assert "a20" not in agents
    assert grants == "Grants that are not in the file stay: a00 · b.*. Add `prune: [grants]` to end them."
    assert describe_unchanged([]) == []
