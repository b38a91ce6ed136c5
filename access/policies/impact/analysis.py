"""Impact analysis: what one policy allows that another does not, and which rules change nothing.

Exact for the language: a widening or a narrowing is reported if and only if there is one, with a call that shows it
(*witness*). Attributes are taken as free of each other, so a witness may be a call that no tool of this hub makes. Beyond
``MAX_CLASSES`` the slice around each changed rule is looked at by itself; a slice that is still too large is cut, and the
answer says which.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from access.policies.clauses import RuleEffect
from access.policies.compiler import compile_policy
from access.policies.impact.call_classes import (
    DECIDES,
    MAX_CLASSES,
    CallSpace,
    Difference,
    RuleUnit,
    SearchMeter,
    TooManyClasses,
    find_differences,
)
from access.policies.impact.outcomes import DIFFERENT, NARROWER, WIDER, as_json, combine_units, compare_values
from access.policies.verdict import evaluate_policies
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from access.policies.compiler import CompiledPolicy

MAX_SHIFTS = 100
ASPECTS: tuple[RuleEffect | None, ...] = (
    None,
    RuleEffect.CONSENT,
    RuleEffect.CEILING,
    RuleEffect.ISOLATION,
    RuleEffect.OBLIGE,
    RuleEffect.PRICE,
    RuleEffect.DEGRADE,
)
CALL = "call"
# What stands for a tenant's layer while none is in force: it has nothing to say.
SILENT_DOCUMENT: dict[str, Any] = {"format": 1, "rules": [{"id": "silent", "effect": "permit", "when": {}}]}


@dataclass(frozen=True, slots=True)
class Shift:
    """One way in which the new policy is wider or narrower than the old. ``aspect`` is ``call``, or the effect of the rules
    that add something; ``before`` and ``after`` say what holds for the witness, as data (outcomes.as_json).
    """

    aspect: str
    direction: str
    before: Any
    after: Any
    old_rules: tuple[str, ...]
    new_rules: tuple[str, ...]
    witness: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeadRule:
    """A rule that could go: ``why`` is never_matches, or makes_no_difference."""

    rule: str
    why: str


@dataclass(slots=True)
class Analysis:
    """``sliced``: each changed rule was looked at by itself. Not ``complete``: ``unfinished`` rules may change more than is
    listed, or were not looked at for being dead.
    """

    shifts: list[Shift] = field(default_factory=list)
    dead: list[DeadRule] = field(default_factory=list)
    classes: int = 0
    sliced: bool = False
    unfinished: list[str] = field(default_factory=list)
    more: int = 0  # shifts beyond MAX_SHIFTS

    @property
    def complete(self) -> bool:
        return not self.unfinished

    def of(self, direction: str) -> list[Shift]:
        return [shift for shift in self.shifts if shift.direction == direction]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"complete": self.complete}

    def summary(self) -> dict[str, Any]:
        """What a fact keeps."""
        counted = {direction: len(self.of(direction)) for direction in (WIDER, NARROWER, DIFFERENT)}
        dead = [each.rule for each in self.dead][:20]
        return counted | {"dead": dead, "complete": self.complete}


def analyse_change(old: dict[str, Any], new: dict[str, Any], *, at_most: int = MAX_CLASSES) -> Analysis:
    """From the policy ``old`` to the policy ``new``, both sound documents of one layer."""
    policies = compile_policy(old, "old", compute_digest(old)), compile_policy(new, "new", compute_digest(new))
    old_units, new_units = [RuleUnit.of(rule) for rule in old["rules"]], [RuleUnit.of(rule) for rule in new["rules"]]
    space = CallSpace([*old_units, *new_units])
    found = Analysis()
    names = dict(zip([*old_units, *new_units], [rule["id"] for rule in [*old["rules"], *new["rules"]]], strict=True))
    meter = SearchMeter(at_most)
    seen: set[Any] = set()
    for aspect in ASPECTS:
        for each in _searched(space, old_units, new_units, aspect, meter, found, names):
            _add(found, seen, aspect, each, policies)
    found.shifts.sort(key=lambda shift: (shift.direction != WIDER, shift.aspect, shift.new_rules, shift.old_rules))
    found.dead = list(_dead(space, new, new_units, SearchMeter(at_most), found))
    found.classes = meter.seen
    return found


def _searched(
    space: CallSpace,
    old: Sequence[RuleUnit],
    new: Sequence[RuleUnit],
    aspect: RuleEffect | None,
    meter: SearchMeter,
    found: Analysis,
    names: dict[RuleUnit, str],
) -> Iterator[Difference]:
    try:
        yield from find_differences(space, old, new, aspect, meter)
    except TooManyClasses:
        found.sliced = True
    else:
        return
    own = DECIDES if aspect is None else (aspect,)
    changed = [
        unit for unit in dict.fromkeys([*old, *new]) if unit.effect in own and (unit in old) is not (unit in new)
    ]
    left = meter.at_most
    for place, unit in enumerate(changed):
        share = SearchMeter(max(1, left // (len(changed) - place)))
        try:
            yield from find_differences(space, old, new, aspect, share, only=[unit])
        except TooManyClasses:
            found.unfinished.append(names[unit])
            yield from find_differences(space, old, new, aspect, share, only=[unit], beam=True)
        left -= share.seen
        meter.seen += share.seen


def _add(
    found: Analysis, seen: set[Any], aspect: RuleEffect | None, each: Difference, policies: Sequence[CompiledPolicy]
) -> None:
    """Keep a difference that is one, once for the changed rules and the outcomes that make it up."""
    was, now = combine_units(aspect, each.old), combine_units(aspect, each.new)
    direction = compare_values(aspect, was, now)
    key = (aspect, each.changed, was, now)
    if not direction or key in seen:
        return
    seen.add(key)
    if len(found.shifts) >= MAX_SHIFTS:
        found.more += 1
        return
    old_rules, new_rules = (_named(policy, aspect, each.witness) for policy in policies)
    shift = Shift(
        aspect=aspect or CALL,
        direction=direction,
        before=as_json(aspect, was),
        after=as_json(aspect, now),
        old_rules=old_rules,
        new_rules=new_rules,
        witness=each.witness,
    )
    found.shifts.append(shift)


def _named(policy: CompiledPolicy, aspect: RuleEffect | None, witness: dict[str, Any]) -> tuple[str, ...]:
    """The ids of the rules behind one aspect of what a policy says of the witness."""
    effects = {rule.ref: rule.effect for rule in policy.rules}
    wanted = DECIDES if aspect is None else (aspect,)
    return tuple(
        sorted(ref.partition("#")[2] for ref in evaluate_policies([policy], witness).rules if effects[ref] in wanted)
    )


def _dead(
    space: CallSpace, document: dict[str, Any], units: list[RuleUnit], meter: SearchMeter, found: Analysis
) -> Iterator[DeadRule]:
    """Rules without which, each for itself, every call would be decided alike."""
    for index, (rule, unit) in enumerate(zip(document["rules"], units, strict=True)):
        if not space.bits[unit]:
            yield DeadRule(rule["id"], "never_matches")
            continue
        rest = units[:index] + units[index + 1 :]
        aspect = None if unit.effect in DECIDES else unit.effect
        try:
            matters = any(
                combine_units(aspect, each.old) != combine_units(aspect, each.new)
                for each in find_differences(space, units, rest, aspect, meter, only=[unit])
            )
        except TooManyClasses:
            found.unfinished.append(rule["id"])
            continue
        if not matters:
            yield DeadRule(rule["id"], "makes_no_difference")
