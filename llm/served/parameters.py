"""Parameters: what becomes of each parameter of a served format. The tables are data: bodies are read by them, and the reference
is made from them.

Nothing is dropped in silence. What changes nothing in the answer may be left out with a warning; whatever else the hub cannot do
is refused, and what it does not know as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid
from llm.model_features import Treatment
from llm.problems import ParameterUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FINDINGS = 20
UNKNOWN = "There is no such parameter."


@dataclass(frozen=True, slots=True)
class Parameter:
    """``meaning``: a sentence for callers. ``usual``: values that ask for nothing beyond what is done anyhow, as null always does."""

    name: str
    treatment: Treatment
    meaning: str
    usual: tuple[Any, ...] = ()

    def asks_for_nothing(self, value: Any) -> bool:
        return value is None or any(type(value) is type(each) and value == each for each in self.usual)


def passed(name: str, meaning: str) -> Parameter:
    return Parameter(name, Treatment.PASSED, meaning)


def warned(name: str, meaning: str, *usual: Any) -> Parameter:
    return Parameter(name, Treatment.WARNED, meaning, usual)


def refused(name: str, meaning: str, *usual: Any) -> Parameter:
    return Parameter(name, Treatment.REFUSED, meaning, usual)


class Findings:
    """The mistakes of one body, each with its place, until they are raised together."""

    def __init__(self) -> None:
        self.wrong: list[dict[str, str]] = []
        self.unsupported: list[dict[str, str]] = []

    def add_wrong(self, pointer: str, message: str) -> None:
        self.wrong.append({"pointer": pointer, "message": message})

    def add_unsupported(self, pointer: str, message: str) -> None:
        self.unsupported.append({"pointer": pointer, "message": message})

    def check(self) -> None:
        """Raise SchemaInvalid for what is wrong, or ParameterUnsupported for what is only not done here."""
        found = [*self.wrong, *self.unsupported][:MAX_FINDINGS]
        if not found:
            return
        place, message = found[0]["pointer"], found[0]["message"]
        said = f"At {place}: {message}" if place else message
        raise (SchemaInvalid if self.wrong else ParameterUnsupported)(said, details={"findings": found})


def read_parameters(
    body: Any, table: Iterable[Parameter], findings: Findings, at: str = ""
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(What is passed on, what is said of the rest). Raises SchemaInvalid for what is no object; all else goes to ``findings``."""
    if not isinstance(body, dict):
        raise SchemaInvalid.at(at, "This is an object.")
    known = {each.name: each for each in table}
    given: dict[str, Any] = {}
    warnings: list[str] = []
    for name, value in body.items():
        parameter, pointer = known.get(name), f"{at}/{escape(name)}"
        if parameter is None:
            if value is not None:
                findings.add_wrong(pointer, UNKNOWN)
        elif parameter.asks_for_nothing(value):
            continue
        elif parameter.treatment is Treatment.PASSED:
            given[name] = value
        elif parameter.treatment is Treatment.WARNED:
            warnings.append(f"{pointer}: {parameter.meaning}")
        else:
            findings.add_unsupported(pointer, parameter.meaning)
    return given, tuple(warnings)


def escape(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name[:80].replace("~", "~0").replace("/", "~1")
