"""Requirements: those that a test proves, and those not yet.

Reads the ids from ``docs/reference/requirements.md`` and the marks ``@pytest.mark.req("TOOLS-15")`` from the sources of
the tests, without running them. A mark stands on the test that proves the row: one on a module or a class would count
for tests that show nothing of it. Exit status 0; 2 if a mark stands elsewhere, names an id twice, or one that does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.+) \|$", re.MULTILINE)


def parse_requirements(text: str) -> dict[str, str]:
    """Id to sentence, in the order of the document."""
    return dict(ROW.findall(text))


@dataclass(frozen=True, slots=True)
class Mark:
    """An id that ``mark.req(…)`` names; ``test`` is the line of the test that it decorates, 0 where it decorates none."""

    id: str
    line: int
    test: int


def find_marks(source: str) -> list[Mark]:
    """The marks of a test module, wherever they stand in it, line by line."""
    if "req" not in source:
        return []
    tree = ast.parse(source)
    tests = {
        name: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for decorator in node.decorator_list
        for name in walk_ids(decorator)
    }
    marks = [Mark(str(name.value), name.lineno, tests.get(name, 0)) for name in walk_ids(tree)]
    return sorted(marks, key=lambda mark: mark.line)


def walk_ids(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="req", value=ast.Attribute(attr="mark")), args=names):
                yield from (name for name in names if isinstance(name, ast.Constant))


def read_marks() -> dict[str, list[Mark]]:
    """Those of each file below ``tests/``."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return {str(file.relative_to(ROOT)): find_marks(file.read_text(encoding="utf-8")) for file in files}


def find_mistakes(marks: dict[str, list[Mark]], known: Container[str]) -> list[str]:
    """Marks that prove nothing, each a line with its place."""
    return [
        f"{file}:{mark.line}: {mistake}"
        for file, named in marks.items()
        for place, mark in enumerate(named)
        for mistake in (
            f"there is no requirement {mark.id}" if mark.id not in known else "",
            f"{mark.id} stands on no test: mark each test that shows it" if not mark.test else "",
            f"{mark.id} marks its test twice"
            if (mark.test, mark.id) in [(m.test, m.id) for m in named[:place]]
            else "",
        )
        if mistake
    ]


def main() -> int:
    known = parse_requirements((ROOT / "docs" / "reference" / "requirements.md").read_text(encoding="utf-8"))
    marks = read_marks()
    proofs = {mark.id for named in marks.values() for mark in named if mark.test}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in known:
        groups[name.partition("-")[0]].append(name)
    for group, names in groups.items():
        print(f"{group:6} {sum(name in proofs for name in names):3} of {len(names):3} have a test")
    print(f"{'all':6} {sum(name in proofs for name in known):3} of {len(known):3} have a test")
    missing = [name for name in known if name not in proofs]
    if missing:
        print("\nwithout a test:")
        for name in missing:
            sentence = known[name]
            print(f"  {name:9} {sentence if len(sentence) <= 100 else sentence[:99] + '…'}")
    mistakes = find_mistakes(marks, known)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 2 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
