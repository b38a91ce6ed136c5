"""The words of code: none that was retired, one meaning a class name, and functions that say what they do with what."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.source_files import read_docstring
from tests.support.templates import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kernel", "toolhub", "unitools", "evidence", "access", "registry", "llm", "invocations", "sandbox")
MODULES = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts
)

# Beside them, what no hub serves: demonstration tools, measurements, set-up. A test says what it asks, behind its name.
DOCUMENTED = sorted(
    {*MODULES, *(path for folder in ("tools", "bench", "scripts") for path in (ROOT / folder).rglob("*.py"))}
)
ASKS = re.compile(
    r"(?:How|What|Which|Who|Whom|Whose|Where|When|Why|Is|Are|Was|Were|Does|Do|Did|Has|Have|May|Can|Could"
    r"|(?:With|At|In|Of|From|For|To|By|On|Until|After) (?:which|whom|what|when))\b"
)

# What stood in names of code once, and the field's word for it (docs/reference/glossary.md).
RETIRED = {
    "standing": "decision context; of a budget: status",
    "ring": "wake-up, enqueue",
    "rung": "notified",
    "bell": "wake-up",
    "doorbell": "wake-up",
    "minding": "lease heartbeat",
    "oblige": "obligation enforcement",
    "obliging": "obligation enforcement",
    "narrowing": "attenuation",
    "reaching": "egress report",
    "shipping": "staged packages",
    "rooms": "isolation",
    "whys": "denial reasons",
    "fitting": "matcher, matching",
    "keeping": "retention",
    "preferring": "Prefer header",
    "preflighting": "preflight requests",
    "told": "a verb and a noun",
    "said": "a verb and a noun",
}
# Names that keep such a word.
KEPT = {
    "STANDING": "a value of the API",
    "OBLIGE": "a value of the policy language",
}
# Attributes and columns are nouns of what they hold; their renaming is a migration or a change of the wire.
OF_FUNCTIONS_ONLY = {"told", "said"}

ONE_WORD_AT_MOST = 0.15

# Names that two or more public classes have because they are one idea, seen from two sides.
ONE_IDEA = {
    "AddressInvalid": "a domain error: the author raises it, the catalogue has it, the caller catches it",
    "ComplianceBlocked": "a domain error, as above",
    "Conflict": "a domain error, as above",
    "InvalidArgument": "a domain error, as above",
    "NotFound": "a domain error, as above",
    "OutOfStock": "a domain error, as above",
    "PriceChanged": "a domain error, as above",
    "UpstreamError": "a domain error, as above",
    "Forbidden": "a problem of the hub, and the exception that its client raises for it",
    "Internal": "a problem of the hub, and the exception that its client raises for it",
    "RateLimited": "a problem of the hub, and the exception that its client raises for it",
    "TooLarge": "more than is read: of a request's body, of an archive",
    "UnknownSigner": "no trusted key signed it: a capsule, a checkpoint",
    "ToolFailed": "a tool's failure in the box, and the problem that it becomes",
    "UnknownDialect": "the SDK's error, and the problem that it becomes",
    "ChatAnswer": "what a model said: in the package llm, and as the hub's client reads it",
    "ChatDelta": "a piece of it, as above",
    "EmbedAnswer": "what a model said, as above",
    "RerankAnswer": "what a model said, as above",
    "Capsule": "the archive, and the row that it is stored in",
    "Checkpoint": "the signed note, and the row that it is stored in",
    "Preflight": "the decision, and what the hub's client shows of it",
    "Source": "where a value is from: as a tool says it, and as the client reads it",
    "ToolResult": "what a tool answered, in the SDK and in the form of the older tool service",
    "DatabaseWrapper": "Django looks for a backend's class by this name",
    "Prefix": "names that begin so: of tools in the hub, of tools in a Universe",
    "Transport": "Celery looks for a broker's class by this name",
}
OF_A_FRAMEWORK = {"Meta", "Command"}


def split_words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


@cache
def list_names(path: Path) -> list[tuple[str, str, str]]:
    return list(walk_names(path))


def walk_names(path: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, name and place of what the module is called and defines: functions, classes, attributes of classes, settings."""
    place = path.relative_to(ROOT).as_posix()
    yield "module", path.stem if path.stem != "__init__" else path.parent.name, place
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.name, f"{place}:{node.lineno}"
        elif isinstance(node, ast.ClassDef):
            yield "class", node.name, f"{place}:{node.lineno}"
            for each in node.body:
                targets = [each.target] if isinstance(each, ast.AnnAssign) else getattr(each, "targets", [])
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield "attribute", target.id, f"{place}:{each.lineno}"
    for each in tree.body:
        targets = [each.target] if isinstance(each, ast.AnnAssign) else getattr(each, "targets", [])
        for target in targets:
            if isinstance(target, ast.Name) and target.id.startswith("TOOLHUB_"):
                yield "setting", target.id, f"{place}:{each.lineno}"


def find_retired_words(kind: str, name: str) -> set[str]:
    if name in KEPT:
        return set()
    words = set(split_words(name)) & set(RETIRED)
    return words if kind in ("function", "module") else words - OF_FUNCTIONS_ONLY


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("module", "standing"),
        ("class", "RingSender"),
        ("function", "_was_told"),
        ("attribute", "rung_since"),
        ("setting", "TOOLHUB_RING_AGAIN_S"),
    ],
)
def test_a_retired_word_is_found_in_every_kind_of_name(kind: str, name: str) -> None:
    assert find_retired_words(kind, name)


@pytest.mark.parametrize("name", ["string", "restoring", "outstanding_calls", "STANDING"])
def test_a_longer_word_or_a_name_that_is_kept_is_no_retired_word(name: str) -> None:
    assert not find_retired_words("function", name)


def test_no_name_of_code_has_a_retired_word() -> None:
    found = {
        f"{place} {name}: {', '.join(f'{word} → {RETIRED[word]}' for word in sorted(words))}"
        for path in MODULES
        for kind, name, place in list_names(path)
        if (words := find_retired_words(kind, name))
    }

    assert found == set()


def begins_with_its_thing(line: str) -> bool:
    """Whether a docstring's first line names a thing: "Consents: who asked, who decided, what for."."""
    return "?" not in line and not ASKS.match(line)


@pytest.mark.parametrize("line", ["Who asked, and who decided?", "What a call leaves.", "Consents: who asked?", "How."])
def test_a_first_line_that_asks_does_not_begin_with_its_thing(line: str) -> None:
    assert not begins_with_its_thing(line)


@pytest.mark.parametrize("line", ["Consents: who asked, who decided, what for.", "Whole log: leaf by leaf.", "Dotenv."])
def test_a_first_line_that_names_a_thing_begins_with_it(line: str) -> None:
    assert begins_with_its_thing(line)


def test_the_docstring_of_a_module_begins_with_the_name_of_its_thing() -> None:
    first_lines = {path.relative_to(ROOT).as_posix(): read_docstring(path).partition("\n")[0] for path in DOCUMENTED}

    assert {path: line for path, line in first_lines.items() if not begins_with_its_thing(line)} == {}


def test_the_docstring_of_a_test_does_not_begin_with_its_question() -> None:
    first_lines = {
        path.relative_to(ROOT).as_posix(): read_docstring(path).partition("\n")[0]
        for path in (ROOT / "tests").rglob("*.py")
    }

    assert {path: line for path, line in first_lines.items() if ASKS.match(line)} == {}


def test_no_template_is_named_by_a_retired_word() -> None:
    assert [path.as_posix() for path in TEMPLATES if find_retired_words("module", path.stem)] == []


def test_few_public_functions_are_named_by_one_word() -> None:
    public = [
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    of_one_word = [name for name in public if "_" not in name]

    assert len(public) > 1000
    assert len(of_one_word) / len(public) < ONE_WORD_AT_MOST, sorted(of_one_word)


def list_shared_class_names() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for kind, name, place in list_names(path):
            if kind == "class" and not name.startswith("_") and name not in OF_A_FRAMEWORK:
                places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_two_public_classes_share_a_name_only_where_they_are_one_idea() -> None:
    assert {name: places for name, places in list_shared_class_names().items() if name not in ONE_IDEA} == {}


def test_the_list_of_shared_class_names_has_none_that_is_not_shared() -> None:
    assert set(ONE_IDEA) - set(list_shared_class_names()) == set()
