"""Code blocks of the docs: which code blocks do the README and the how-tos hold, and what becomes of each in the tests?

A block in ``sh`` or ``python`` is run (tests/e2e/test_doc_blocks.py), data is validated, a block without a language is output. In
HTML comments directly above a block, which readers do not see, its page may say:

``<!-- file: quotes.py -->``     it is kept under this name, beside what the other blocks of the page find
``<!-- run by: tests/x.py -->``  another test runs it
``<!-- not run: why -->``        it cannot run in CI; it is still read as what it says it is
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
SHELL, PYTHON, DATA, OUTPUT = ("sh", "bash"), ("python",), ("json", "yaml", "toml"), ("", "text", "console")
MARKED_ONLY = ("sql",)  # nothing here runs it, so such a block says why
# Sections whose blocks another test runs, in their order and on the machines that they name (``# on the keeper's host``).
ELSEWHERE = {
    ("run-the-production-shape.md", "With docker compose"): "tests/compose/test_compose.py",
    ("run-the-production-shape.md", "By hand"): "tests/e2e/test_production_how_to.py",
    ("run-the-production-shape.md", "Connections"): "tests/e2e/test_production_how_to.py",
}
_FENCE = re.compile(
    r"^(?P<notes>(?:[ ]*<!--[^\n]*-->\n)*)(?P<indent>[ ]*)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_NOTE = re.compile(r"<!-- (file|run by|not run): (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    section: str = ""
    file: str = ""
    not_run: str = ""
    elsewhere: str = ""  # the test that runs it

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def is_run(self, languages: tuple[str, ...]) -> bool:
        return self.language in languages and not self.not_run and not self.file and not self.elsewhere


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        notes = dict(_NOTE.findall(match["notes"]))
        section = ["", *_SECTION.findall(text, 0, match.start())][-1]
        names_its_host = match["language"] in SHELL and match["text"].startswith("# on ")
        found.append(
            Block(
                page,
                text.count("\n", 0, match.end("notes")) + 1,
                match["language"],
                textwrap.dedent(match["text"]),
                section=section,
                file=notes.get("file", ""),
                not_run=notes.get("not run", ""),
                elsewhere=ELSEWHERE.get((page.name, section), "") if names_its_host else notes.get("run by", ""),
            )
        )
    return found


ALL = [block for page in PAGES for block in blocks_of(page)]


def check_reads(block: Block) -> None:
    """Whether it is at least a text of its language. Raises what its reader raises."""
    if block.language in SHELL:
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True, capture_output=True)
    elif block.language in PYTHON:
        compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    elif block.language in DATA:
        value_of(block)
    elif block.language not in OUTPUT and not (block.language in MARKED_ONLY and block.not_run):
        raise ValueError(f"{block.language!r} is no language that tests/support/doc_blocks.py knows; add it there.")


class _Yaml(yaml.SafeLoader):
    """As the hub reads its own files: a time is a text."""


_Yaml.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: node.value)
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|,\s*…|…')


def value_of(block: Block) -> Any:
    """The value of a block of data. In JSON an ellipsis outside of texts stands for more of the same; members may stand alone."""
    if block.language == "yaml":
        return yaml.load(block.text, _Yaml)
    if block.language == "toml":
        return tomllib.loads(block.text)
    text = _PIECE.sub(lambda match: match[0] if match[0].startswith('"') else "", block.text).strip()
    return json.loads(text if text[0] in "{[" else "{" + text + "}")
