"""Containment: whether one expression names a tool that another does not, and which.

Atoms ask little of a tool: its id, its effect, its safety class, one tag, one domain. So tools fall into finitely many classes
that two expressions cannot tell apart inside. They are gone through by choosing what is not decided yet, one question at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.expressions.values import (
    EFFECTS,
    SAFETY_CLASSES,
    And,
    Domain,
    Effect,
    Everything,
    Exact,
    Expression,
    Not,
    Or,
    Prefix,
    Safety,
    Subject,
    Tag,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHOICES = 5_000
Chosen = dict[str, str | bool]  # question → answer: {"id": "a.b.c", "tag:x": False, …}


class TooEntangledError(ValueError):
    """Whether one of the expressions is within the other takes too long to find out."""


def find_tool_beyond(part: Expression, whole: Expression) -> Subject | None:
    """A tool that ``part`` names and ``whole`` does not; None when there is none."""
    return _ContainmentSearch(part, whole).run({})


class _ContainmentSearch:
    def __init__(self, part: Expression, whole: Expression) -> None:
        self.part, self.whole = part, whole
        self.ids = _ids([*_atoms(part), *_atoms(whole)])
        self.left = MAX_CHOICES

    def run(self, chosen: Chosen) -> Subject | None:
        named, held = _holds(self.part, chosen), _holds(self.whole, chosen)
        if named is False or held is True:
            return None
        if named and held is False:
            return self._subject(chosen)
        open_atom = _undecided(self.part, chosen)
        if open_atom is None:
            open_atom = _undecided(self.whole, chosen)
        assert open_atom is not None
        for answer in self._answers(open_atom):
            self.left -= 1
            if self.left < 0:
                raise TooEntangledError("It has too many parts to be compared. Write it with fewer tags.")
            if found := self.run(chosen | {_question(open_atom): answer}):
                return found
        return None

    def _answers(self, atom: Expression) -> Sequence[str | bool]:
        match atom:
            case Exact() | Prefix():
                return self.ids
            case Effect():
                return EFFECTS
            case Safety():
                return SAFETY_CLASSES
            case _:
                return (False, True)

    def _subject(self, chosen: Chosen) -> Subject:
        def named(kind: str) -> frozenset[str]:
            return frozenset(each.removeprefix(kind) for each, yes in chosen.items() if yes and each.startswith(kind))

        return Subject(
            id=str(chosen.get("id", self.ids[-1])),
            tags=named("tag:"),
            side_effect=str(chosen.get("effect", EFFECTS[0])),
            safety_class=str(chosen.get("safety", SAFETY_CLASSES[0])),
            domains=named("domain:"),
        )


def _atoms(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Not():
            yield from _atoms(expression.part)
        case And() | Or():
            for part in expression.parts:
                yield from _atoms(part)
        case _:
            yield expression


def _ids(atoms: Sequence[Expression]) -> list[str]:
    """Every id that is named, one more of each prefix that is, and one of none; the last is that one."""
    exact = {atom.id for atom in atoms if isinstance(atom, Exact)}
    prefixes = {atom.prefix for atom in atoms if isinstance(atom, Prefix)}
    words = {word for name in exact | prefixes for word in name.split(".")}
    other = "other"
    while other in words:
        other += "_"
    more = [prefix + f".{other}" * (2 - prefix.count(".")) for prefix in prefixes]
    return [*sorted(exact), *sorted(more), f"{other}.{other}.{other}"]


def _question(atom: Expression) -> str:
    match atom:
        case Exact() | Prefix():
            return "id"
        case Effect():
            return "effect"
        case Safety():
            return "safety"
        case _:
            return str(atom)


def _holds(expression: Expression, chosen: Chosen) -> bool | None:
    """None: it depends on what is not chosen yet."""
    match expression:
        case Not():
            inner = _holds(expression.part, chosen)
            return None if inner is None else not inner
        case And() | Or():
            decisive = isinstance(expression, Or)
            answers = [_holds(part, chosen) for part in expression.parts]
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        case Exact() | Prefix():
            return expression.matches(Subject(str(chosen["id"]))) if "id" in chosen else None
        case Effect() | Safety():
            question = _question(expression)
            return chosen[question] == expression.name if question in chosen else None
        case Tag() | Domain():
            answer = chosen.get(str(expression))
            return None if answer is None else bool(answer)
        case Everything():
            return True
        case _:
            raise TypeError(f"{expression} says nothing about tools of a hub.")


def _undecided(expression: Expression, chosen: Chosen) -> Expression | None:
    """An atom on which it depends."""
    if _holds(expression, chosen) is not None:
        return None
    match expression:
        case Not():
            return _undecided(expression.part, chosen)
        case And() | Or():
            return next(found for part in expression.parts if (found := _undecided(part, chosen)) is not None)
        case _:
            return expression
