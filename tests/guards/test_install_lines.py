"""Does any page, text of a command or template tell somebody to install a stranger's package?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRANGERS = {"unitools", "toolhub"}  # on PyPI these are other people's
PLACES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "packaging").glob("*/README.md"),
    *(ROOT / "templates").rglob("*.html"),
    *(ROOT / "docker").iterdir(),
    *(
        path
        for package in ("unitools", "evidence", "registry", "toolhub", "scripts")
        for path in (ROOT / package).rglob("*.py")
    ),
]
LINE = re.compile(r"\b(?:pip3?|uv|pipx)\s+(?:pip\s+)?(?:install|add|download)\b([^\n`]*)")
NAME = re.compile(r"(?<![\w/.-])(unitools|toolhub(?:-[a-z]+)?)(?![\w/.-])")


def lines() -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(ROOT)), match[1])
        for path in PLACES
        if path.name != "CHANGELOG.md"
        for match in LINE.finditer(path.read_text(encoding="utf-8"))
    ]


def wrong_with(line: str) -> str:
    words = line.partition(" #")[0]
    named = set(NAME.findall(words))
    if "--extra-index-url" in words:
        return "of two indexes the higher version wins, whoever made it"
    if named & STRANGERS:
        return "the name belongs to somebody else"
    if (named or "{DISTRIBUTION}" in words) and "--index-url" not in words:
        return "our packages come from a hub: --index-url https://hub.example.org/sdk/"
    return ""


def test_nothing_tells_anybody_to_install_a_strangers_package() -> None:
    found = [(place, line, why) for place, line in lines() if (why := wrong_with(line))]

    assert len(lines()) > 10
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        " unitools",
        ' "unitools[hub]"',
        " -U toolhub",
        " toolhub-unitools",
        " --extra-index-url https://h/sdk/ toolhub-verify",
    ],
)
def test_the_guard_sees_such_a_line(line: str) -> None:
    assert wrong_with(line)


def test_no_distribution_of_ours_has_a_strangers_name() -> None:
    names = {
        tomllib.loads(path.read_text())["project"]["name"]
        for path in [ROOT / "pyproject.toml", *(ROOT / "packaging").glob("*/pyproject.toml")]
    }

    assert names == {"toolhub-server", "toolhub-unitools", "toolhub-verify"}
