"""Places of changes: are there still as few files to open for a change as CONTRIBUTING says, and no more than there were once?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("access", "evidence", "invocations", "kernel", "llm", "registry", "toolhub", "unitools")
MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in path.parts
}
CHANGES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| an? .*\|.*\|.*\|.*\|$", line)
]


def most(counts: str) -> int:
    return max(map(int, re.findall(r"\d+", counts)))


def find_modules(pattern: str) -> set[str]:
    """Those whose text has it."""
    return {name for name, text in MODULES.items() if re.search(pattern, text)}


def test_no_change_takes_more_files_than_once_and_pages_and_attributes_three_at_most() -> None:
    assert [what for what, *_ in CHANGES] == [
        "a preflight rule",
        "a leaf's field",
        "a page",
        "an error's wording",
        "a policy attribute",
        "a box wall",
        "a dialect",
        "an export format",
    ]
    assert [what for what, _, now, once in CHANGES if most(now) > most(once)] == []
    assert {what: most(now) <= 3 for what, _, now, _ in CHANGES if what in ("a page", "a policy attribute")} == {
        "a page": True,
        "a policy attribute": True,
    }


def test_what_is_to_be_opened_is_there() -> None:
    named = {name for _, where, *_ in CHANGES for name in re.findall(r"`([\w./-]+/[\w./-]*)`", where)}

    assert len(named) > 12
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["client_app", "model_verified"])
def test_an_attribute_of_policies_is_named_where_it_is_described_and_where_it_is_filled_in(name: str) -> None:
    found = find_modules(rf'"{name}"')

    assert "access/policies/attributes.py" in found
    assert len(found) == 2, found


@pytest.mark.parametrize("name", ["bedrock", "langchain"])
@pytest.mark.parametrize("kind", ["parsers", "renderers"])
def test_a_dialect_is_named_by_its_driver_alone(kind: str, name: str) -> None:
    assert find_modules(rf"dialects\.{kind} import {name}\b") == {"unitools/dialects/drivers.py"}


def test_an_export_format_is_named_by_its_class_and_its_label_alone() -> None:
    assert find_modules(r"ExportFormat\.CSV\b") == {"evidence/exports/formats.py", "evidence/exports/forms.py"}


def test_a_rule_of_preflight_is_named_in_the_module_of_rules_alone() -> None:
    rules = MODULES["invocations/decide/rules.py"]
    checks = re.findall(r"Rule\(\"\w+\", \"\w+\", (check_\w+)\)", rules)

    assert len(checks) > 10
    assert {name: find_modules(rf"\b{name}\(look: ") for name in checks} == {
        name: {"invocations/decide/rules.py"} for name in checks
    }
