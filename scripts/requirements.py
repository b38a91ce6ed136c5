"""Requirements: those that a test proves, and those not yet.

Reads the ids from ``docs/reference/requirements.md`` and the marks ``@pytest.mark.req("TOOLS-15")`` from the sources of
the tests, without running them. Exit status 0; 2 if a test names a requirement that does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.+) \|$", re.MULTILINE)


def parse_requirements(text: str) -> dict[str, str]:
    """Id to sentence, in the order of the document."""
    return dict(ROW.findall(text))


def find_marks(source: str) -> list[tuple[str, int]]:
    """The ids (with the line) that ``mark.req(…)`` names in a test module, decorators and ``pytestmark`` alike."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="req", value=ast.Attribute(attr="mark")), args=names):
                found += [
                    (name.value, name.lineno)
                    for name in names
                    if isinstance(name, ast.Constant) and isinstance(name.value, str)
                ]
    return sorted(found, key=lambda mark: mark[1])


def main() -> int:
    known = parse_requirements((ROOT / "docs" / "reference" / "requirements.md").read_text(encoding="utf-8"))
    proofs: dict[str, int] = defaultdict(int)
    unknown = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for name, line in find_marks(file.read_text(encoding="utf-8")):
            proofs[name] += 1
            if name not in known:
                unknown.append(f"{file.relative_to(ROOT)}:{line}: there is no requirement {name}")
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
    for line_of_trouble in unknown:
        print(line_of_trouble, file=sys.stderr)
    return 2 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
