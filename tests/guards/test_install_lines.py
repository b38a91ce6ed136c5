"""Install lines: does any page, text of a command or template tell somebody to install a stranger's package?"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRANGERS = {"unitools", "toolhub"}  # on PyPI these are other people's
BINARY = (".mo", ".woff2", ".png", ".ico", ".whl", ".zip")
LEFT_OUT = re.compile(r"tests/|.*\.lock$|CHANGELOG\.md$")  # what a test does, what a tool wrote, what once was


def places() -> list[Path]:
    """All that is in the repository and that somebody may read or run, whatever kind of file it is."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name and not name.endswith(BINARY)]
    return [ROOT / name for name in names if not LEFT_OUT.match(name) and (ROOT / name).is_file()]


LINE = re.compile(r"\b(?:pip3?|uv|pipx)\s+(?:(?:pip|tool|-\S+)\s+)*(?:install|add|download)\b([^\n`]*)")
NAME = re.compile(r"(?<![\w/.-])(unitools|toolhub(?:-[a-z]+)?)(?![\w/.-])")


def lines() -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(ROOT)), match[1])
        for path in places()
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
        " -U toolhub-unitools",
        " --extra-index-url https://h/sdk/ toolhub-verify",
    ],
)
def test_the_guard_sees_such_a_line(line: str) -> None:
    assert wrong_with(line)


def test_all_that_people_read_is_looked_through() -> None:
    read = {str(path.relative_to(ROOT)).partition("/")[0] for path in places()}

    assert read >= {
        "access",
        "invocations",
        "locale",
        "templates",
        "docs",
        "docker-compose.yml",
        "dotenv-sample",
        "Makefile",
    }
    assert "tests" not in read


def test_no_distribution_of_ours_has_a_strangers_name() -> None:
    names = {
        tomllib.loads(path.read_text())["project"]["name"]
        for path in [ROOT / "pyproject.toml", *(ROOT / "packaging").glob("*/pyproject.toml")]
    }

    assert names == {"toolhub-server", "toolhub-llm", "toolhub-unitools", "toolhub-verify"}
