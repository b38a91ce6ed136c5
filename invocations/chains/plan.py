"""Plan: what a plan of calls is, and what may not stand in one.

``{"steps": [{"id", "tool", "arguments", "retry"?, "compensate"?}]}``. In arguments an object with the name ``$from`` is a reference,
``{"$from": "<step>", "pointer": "/total"}``: the value that an earlier step has delivered there. An object with the name ``$data``
stands for what it holds, as it is. Everything else is data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from access.redaction.pointers import parse_pointer
from invocations.chains.models import StepRole
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_STEPS = 20
MAX_RETRIES = 5
MAX_REFERENCES = 200
MAX_POINTER = 500
MAX_PLAN_BYTES = 256 * 1024
FROM, DATA = "$from", "$data"
ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
REFERENCE_FIELDS = {FROM, "pointer", "assume_compatible"}
Place = tuple[str | int, ...]


class MissingValue(LookupError):
    """There is no value where a reference points."""


class Reference(NamedTuple):
    """``place``: where in the arguments it stands. ``assumed``: the caller answers for it that the value fits there."""

    step: str
    pointer: tuple[str, ...]
    place: Place
    assumed: bool = False


def format_pointer(parts: Place) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of the plan, or the one that undoes it. ``at``: where in the plan it stands."""

    name: str
    tool: str
    arguments: Any
    position: int
    at: str
    role: StepRole = StepRole.STEP
    retries: int = 0
    references: tuple[Reference, ...] = ()

    def filled(self, value_of: Callable[[Reference], Any]) -> Any:
        """The arguments with the value of each reference in its place."""
        return _filled(self.arguments, value_of, ())


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """The plan as it was sent, and its calls in the order in which they are made."""

    document: dict[str, Any]
    steps: tuple[PlannedCall, ...]
    compensations: tuple[PlannedCall, ...]

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        return (*self.steps, *self.compensations)

    def one(self, role: str, position: int) -> PlannedCall:
        return next(each for each in self.calls if (each.role, each.position) == (role, position))


def read_plan(document: dict[str, Any]) -> ChainPlan:
    """Raises for the first thing in it that is not right, with the place of it. ``document`` has the fields of its serializer."""
    steps: list[PlannedCall] = []
    compensations: list[PlannedCall] = []
    names: list[str] = []
    for position, said in enumerate(document["steps"]):
        at, name = f"/plan/steps/{position}", said["id"]
        if not ID.fullmatch(name):
            raise SchemaInvalid.at(
                f"{at}/id", "A step's id is 1 to 32 lower-case letters, digits, _ or -, and begins with a letter."
            )
        if name in names:
            raise SchemaInvalid.at(f"{at}/id", f"Two steps are called {name}.")
        common = {"name": name, "position": position}
        found = tuple(find_references(said["arguments"], names, f"{at}/arguments"))
        steps.append(
            PlannedCall(
                tool=said["tool"],
                arguments=said["arguments"],
                at=at,
                retries=said.get("retry", 0),
                references=found,
                **common,
            )
        )
        names.append(name)
        if undo := said.get("compensate"):
            at = f"{at}/compensate"
            found = tuple(find_references(undo["arguments"], names, f"{at}/arguments"))
            compensations.append(
                PlannedCall(
                    tool=undo["tool"],
                    arguments=undo["arguments"],
                    at=at,
                    role=StepRole.COMPENSATION,
                    retries=undo.get("retry", 0),
                    references=found,
                    **common,
                )
            )
    if sum(len(each.references) for each in (*steps, *compensations)) > MAX_REFERENCES:
        raise SchemaInvalid.at("/plan/steps", f"A plan has at most {MAX_REFERENCES} references.")
    return ChainPlan(document, tuple(steps), tuple(reversed(compensations)))


# References.


def find_references(value: Any, earlier: list[str], at: str, place: Place = ()) -> Iterator[Reference]:
    """``earlier``: the steps that may be named. ``at``: where in the request the arguments stand."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from find_references(each, earlier, at, (*place, index))
    elif isinstance(value, dict):
        if FROM in value:
            yield _reference(value, earlier, at + format_pointer(place), place)
        elif DATA in value:
            if len(value) > 1:
                raise SchemaInvalid.at(at + format_pointer(place), f"An object with {DATA} has no other name.")
        else:
            for name, each in value.items():
                yield from find_references(each, earlier, at, (*place, name))


def _reference(value: dict[str, Any], earlier: list[str], at: str, place: Place) -> Reference:
    if unknown := sorted(value.keys() - REFERENCE_FIELDS):
        raise SchemaInvalid.at(
            at,
            f"A reference has {FROM}, pointer and assume_compatible, not {unknown[0][:64]!r}. Data goes into {DATA}.",
        )
    step, pointer, assumed = value[FROM], value.get("pointer", ""), value.get("assume_compatible", False)
    if not isinstance(step, str) or step not in earlier:
        said = f"There is no earlier step {step[:32]!r}." if isinstance(step, str) else f"{FROM} is the id of a step."
        raise SchemaInvalid.at(f"{at}/{FROM}", said + " A step may use what steps before it have delivered.")
    if not isinstance(assumed, bool):
        raise SchemaInvalid.at(f"{at}/assume_compatible", "This is true or false.")
    if not isinstance(pointer, str) or len(pointer) > MAX_POINTER:
        raise SchemaInvalid.at(f"{at}/pointer", f"A pointer is text of at most {MAX_POINTER} characters.")
    if not place:
        raise SchemaInvalid.at(at, "Arguments are an object; a reference stands for one of its values.")
    try:
        return Reference(step, parse_pointer(pointer), place, assumed)
    except ValueError as error:
        raise SchemaInvalid.at(f"{at}/pointer", str(error)) from None


def _filled(value: Any, value_of: Callable[[Reference], Any], place: Place) -> Any:
    if isinstance(value, list):
        return [_filled(each, value_of, (*place, index)) for index, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if FROM in value:
        return value_of(Reference(value[FROM], parse_pointer(value.get("pointer", "")), place))
    if DATA in value:
        return value[DATA]
    return {name: _filled(each, value_of, (*place, name)) for name, each in value.items()}


def resolve_pointer(value: Any, pointer: tuple[str, ...]) -> Any:
    """RFC 6901; raises :class:`MissingValue`."""
    for part in pointer:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", part) and int(part) < len(value):
            value = value[int(part)]
        else:
            raise MissingValue(format_pointer(pointer))
    return value
