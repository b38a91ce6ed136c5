"""Call classes: those in which two sets of rules decide differently.

The attribute space is a product of finitely many cells (:mod:`access.policies.impact.spaces`). Instead of visiting the product, the
search goes through it dimension by dimension and keeps, for every set of rules that can still match, one example: calls that
leave the same rules open have the same future. What cannot end in a difference is dropped on the way, so the answer is
exact: a difference exists if and only if one is found, with a witness.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from access.policies import conditions
from access.policies.attributes import ATTRIBUTES
from access.policies.clauses import RuleEffect
from access.policies.impact import spaces
from kernel.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from access.policies.impact.spaces import Box, Cell, Dimension

MAX_CLASSES = 2_000_000
BEAM = 256
Link = tuple["Link | None", "Cell | None"]
DECIDES = (RuleEffect.PERMIT, RuleEffect.FORBID)


class TooManyClasses(Exception):
    """The search has looked at more classes than it may."""


@dataclass(slots=True)
class SearchMeter:
    """How many classes were looked at; ``at_most`` ends an exact search."""

    at_most: int = MAX_CLASSES
    seen: int = 0


@dataclass(frozen=True, slots=True)
class RuleUnit:
    """What a rule means, without its id and note: two rules that say the same are one unit."""

    effect: RuleEffect
    condition: conditions.AllOf
    says: bytes

    @classmethod
    def of(cls, rule: dict[str, Any]) -> RuleUnit:
        says = {name: value for name, value in rule.items() if name not in ("id", "note", "when", "effect")}
        return cls(RuleEffect(rule["effect"]), conditions.build_condition(rule.get("when", {})), canonicalize(says))


@dataclass(frozen=True, slots=True)
class Difference:
    """The units that match on each side where the outcomes may differ, and one call that is there."""

    old: frozenset[RuleUnit]
    new: frozenset[RuleUnit]
    changed: frozenset[RuleUnit]
    witness: dict[str, Any]


class CallSpace:
    """All terms (boxes of units) as bits, and which of them each cell of each dimension leaves open."""

    def __init__(self, units: Iterable[RuleUnit]) -> None:
        self.bits: dict[RuleUnit, int] = {}
        terms: list[tuple[Box, bool]] = []
        for unit in dict.fromkeys(units):
            certainly = unit.effect is RuleEffect.PERMIT
            self.bits[unit] = 0
            for box in spaces.build_boxes(unit.condition, certainly=certainly):
                self.bits[unit] |= 1 << len(terms)
                terms.append((box, certainly))
        self.all = (1 << len(terms)) - 1
        self.touched: dict[Dimension, int] = defaultdict(int)  # the terms that ask about the dimension
        tests: dict[Dimension, set[conditions.AttributeTest]] = defaultdict(set)
        for index, (box, _) in enumerate(terms):
            for dimension, literals in box.items():
                self.touched[dimension] |= 1 << index
                tests[dimension] |= {test for test, _ in literals}
        self.cells = {
            dimension: list(self._open(dimension, sorted(asked, key=str), terms)) for dimension, asked in tests.items()
        }
        self.classes = 1
        for found in self.cells.values():
            self.classes *= len(found)

    def _open(
        self, dimension: Dimension, tests: list[conditions.AttributeTest], terms: list[tuple[Box, bool]]
    ) -> Iterator[tuple[int, Cell]]:
        """Each class of the dimension once: the terms that it leaves open, and an example."""
        asked = [(test, conditions.compile_condition(test)) for test in tests]
        about = [(1 << index, box[dimension], sure) for index, (box, sure) in enumerate(terms) if dimension in box]
        seen = set()
        for cell in spaces.iter_cells(dimension, tests):
            answers = {test: ask(cell) for test, ask in asked}
            mask = self.all
            for bit, literals, certainly in about:
                if not spaces.agrees_with(literals, answers, certainly=certainly):
                    mask ^= bit
            if mask not in seen:
                seen.add(mask)
                yield mask, cell

    def mask(self, units: Iterable[RuleUnit]) -> int:
        found = 0
        for unit in units:
            found |= self.bits[unit]
        return found

    def matched(self, state: int, units: Iterable[RuleUnit]) -> frozenset[RuleUnit]:
        return frozenset(unit for unit in units if self.bits[unit] & state)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Bits by what they are good for. ``effect`` None: whether a call is allowed; else what a rule of that effect adds."""

    old_permits: int
    new_permits: int
    old_forbids: int
    new_forbids: int
    old: int
    new: int
    changed: int
    decides: bool

    def reduced(self, state: int, decided: int) -> int:
        """The same future with fewer bits; 0 where no difference can come of it any more."""
        if not state & self.changed:
            return 0
        old_no = state & decided & self.old_forbids
        new_no = state & decided & self.new_forbids
        if old_no and new_no:
            return 0
        old_denied = bool(old_no) or not state & self.old_permits
        new_denied = bool(new_no) or not state & self.new_permits
        if (old_denied and new_denied) or ((old_denied or new_denied) and not self.decides):
            return 0
        if old_denied:
            state = state & self.new | old_no & -old_no
        elif new_denied:
            state = state & self.old | new_no & -new_no
        state = self._without_idle_permits(state, state & decided)
        return state if state & self.changed else 0

    def _without_idle_permits(self, state: int, decided: int) -> int:
        """Once a side is permitted, one permit is as good as many."""
        both = decided & self.old_permits & self.new_permits
        if both:
            return state & ~(self.old_permits | self.new_permits) | both & -both
        for mine, other in ((self.old_permits, self.new_permits), (self.new_permits, self.old_permits)):
            own = mine & ~other
            sure = decided & own
            if sure:
                state = state & ~own | sure & -sure
        return state


def find_differences(
    space: CallSpace,
    old: Sequence[RuleUnit],
    new: Sequence[RuleUnit],
    effect: RuleEffect | None,
    meter: SearchMeter,
    *,
    only: Iterable[RuleUnit] | None = None,
    beam: bool = False,
) -> Iterator[Difference]:
    """Every way in which the rules that match can differ and matter: for being allowed (``effect`` None), or for what the
    rules of ``effect`` add to a call that both sides allow. ``only`` looks for what these units change. Raises
    :class:`TooManyClasses`, or with ``beam`` goes on with a part of the classes.
    """
    effects = DECIDES if effect is None else (*DECIDES, effect)
    old = [unit for unit in old if unit.effect in effects]
    new = [unit for unit in new if unit.effect in effects]
    own = DECIDES if effect is None else (effect,)
    changed = {unit for unit in {*old} ^ {*new} if unit.effect in own}
    if only is not None:
        changed &= {*only}
    if not changed:
        return

    def mask(units: Iterable[RuleUnit], kind: RuleEffect | None = None) -> int:
        return space.mask(unit for unit in units if kind is None or unit.effect is kind)

    sides = _Sides(
        old_permits=mask(old, RuleEffect.PERMIT),
        new_permits=mask(new, RuleEffect.PERMIT),
        old_forbids=mask(old, RuleEffect.FORBID),
        new_forbids=mask(new, RuleEffect.FORBID),
        old=mask(old),
        new=mask(new),
        changed=mask(changed),
        decides=effect is None,
    )
    for state, link in _walk(space, sides, meter, beam=beam).items():
        yield Difference(
            old=space.matched(state, old),
            new=space.matched(state, new),
            changed=space.matched(state, changed),
            witness=build_witness(link),
        )


def _walk(space: CallSpace, sides: _Sides, meter: SearchMeter, *, beam: bool) -> dict[int, Link]:
    """Dimension by dimension; those that the changed rules ask about first, since most calls drop out there."""
    relevant = sides.old | sides.new
    plan = sorted(
        (dimension for dimension, touched in space.touched.items() if touched & relevant),
        key=lambda dimension: (not space.touched[dimension] & sides.changed, len(space.cells[dimension]), dimension),
    )
    open_later = [0] * (len(plan) + 1)
    for place in range(len(plan) - 1, -1, -1):
        open_later[place] = open_later[place + 1] | space.touched[plan[place]]
    start = sides.reduced(relevant, relevant & ~open_later[0])
    states: dict[int, Link] = {start: (None, None)} if start else {}
    for place, dimension in enumerate(plan):
        decided = relevant & ~open_later[place + 1]
        cells = {mask & relevant: cell for mask, cell in reversed(space.cells[dimension])}
        if beam and len(states) > BEAM:
            states = dict(list(states.items())[:BEAM])
        states = _step(states, cells, sides.reduced, decided, meter, beam=beam)
    return states


def _step(
    states: dict[int, Link],
    cells: dict[int, Cell],
    reduced: Callable[[int, int], int],
    decided: int,
    meter: SearchMeter,
    *,
    beam: bool,
) -> dict[int, Link]:
    known: dict[int, int] = {0: 0}
    found: dict[int, Link] = {}
    for state, link in states.items():
        meter.seen += len(cells)
        if meter.seen > meter.at_most and not beam:
            raise TooManyClasses
        for mask, cell in cells.items():
            raw = state & mask
            kept = known.get(raw)
            if kept is None:
                kept = known[raw] = reduced(raw, decided)
            if kept and kept not in found:
                found[kept] = (link, cell)
    return found


def build_witness(link: Link | None) -> dict[str, Any]:
    """A whole call: what the walk chose, and something ordinary for what no rule asks about."""
    chosen: dict[str, Any] = {}
    while link is not None:
        link, cell = link
        for name, value in (cell or {}).items():
            chosen[name] = (*chosen.get(name, ()), *value) if isinstance(value, tuple) else value
    for name in ATTRIBUTES:
        if name not in chosen and name != "group":
            chosen |= next(spaces.iter_cells((name, ""), ()))
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items() if value is not None
    }
