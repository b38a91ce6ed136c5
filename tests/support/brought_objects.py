"""Brought objects: what does Python code of an author look like that tests bring, and how is it brought and taken to a hub?"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from unitools.capsules import pack_capsule
from unitools.command import main

if TYPE_CHECKING:
    from pathlib import Path

LANGCHAIN = '''
import os
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, Tool, ToolException, tool
from pydantic import BaseModel

KEPT: list[str] = []


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    KEPT.append("called")
    return a + b + 0 * len(KEPT)


@tool
async def wait_for(city: str) -> dict[str, int]:
    """Look up a city, without another way."""
    return {city: len(city)}


class Count(BaseTool):
    name: str = "Count-Letters"
    description: str = "Count letters."
    args_schema: dict = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["text"],
    }
    seen: list[str] = []

    def _run(self, text: str, times: int = 1) -> list[int]:
        self.seen.append(text)
        return [len(text) * times, len(self.seen)]


@tool
def balance(currency: str, user: Annotated[str, InjectedToolArg]) -> str:
    """What is on the account."""
    return f"{user} {currency}"


class Open(BaseTool):
    name: str = "open"
    description: str = "It takes what nobody has named."
    args_schema: dict = {"type": "object", "properties": {"word": {"type": "string"}}, "additionalProperties": True}

    def _run(self, word: str, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
        return f"{user} {word}"


class Shown(Open):
    name: str = "shown"
    args_schema: dict = {"type": "object", "properties": {"word": {"type": "string"}, "user": {"type": "string"}}}


class Keyed(BaseTool):
    name: str = "keyed"
    description: str = "Say how long the key is."
    length: int = 0

    def __init__(self, **more: Any) -> None:
        super().__init__(length=len(os.environ["SHOP_KEY"]), **more)

    def _run(self, word: str) -> str:
        return f"{word} {self.length}"


class AsyncOnly(BaseTool):
    name: str = "async_only"
    description: str = "It has no other form."

    def _run(self, word: str) -> str:
        raise NotImplementedError("Use it with ainvoke.")

    async def _arun(self, word: str) -> str:
        return word[::-1]


@tool(response_format="content_and_artifact")
def draw(title: str) -> tuple[str, list[int]]:
    """Draw something."""
    return f"Drawn: {title}", [1, 2, 3]


@tool
def refuse(word: str) -> str:
    """Say no."""
    raise ToolException(f"There is no {word}.")


refuse.handle_tool_error = True


@tool
def named(word: str, call: Annotated[str, InjectedToolCallId]) -> str:
    """Say by which call."""
    return f"{word} {bool(call)}"


class InjectedState(InjectedToolArg):
    """As LangGraph has it."""


@tool
def in_a_graph(word: str, state: Annotated[dict[str, str], InjectedState]) -> str:
    """Look into the state of an agent."""
    return state[word]


single = Tool(name="single", func=lambda text: text.upper(), description="In capitals.")


class Untyped(BaseTool):
    name: str = "untyped"
    description: str = "Nobody says of what type."

    def _run(self, word, times=1):
        return word * times


class Installs(BaseTool):
    name: str = "installs"
    description: str = "It installs what it needs."

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        try:
            import a_module_that_nobody_has
        except ImportError:
            import subprocess

            subprocess.run(["uv", "add", "a-module-that-nobody-has"], check=True)

    def _run(self, word: str) -> str:
        return word


def convert(celsius: float, to: str = "F") -> str:
    """Convert a temperature.

    Args:
        celsius: what is measured
    """
    return f"{celsius * 9 / 5 + 32:.0f}{to}"
'''
PLAIN = LANGCHAIN[LANGCHAIN.index("def convert") :]


@dataclass(frozen=True, slots=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


def bring_python(folder: Path, *arguments: str, answers: str = "") -> Said:
    """What the command says in this folder. It runs in this process, since to load it takes longer than it does; the process that
    tries objects is its own, as always."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("SHOP_KEY", "of-this-machine")
        patch.setattr(sys, "stdin", io.StringIO(answers))
        patch.setattr(sys, "path", [str(folder), *(each for each in sys.path if each)])
        try:
            ended = main(["bring", "python", *arguments])
        except SystemExit as refused:  # of the command line
            ended = int(refused.code or 0)
    return Said(ended, out.getvalue(), err.getvalue())


def read_manifests(folder: Path) -> dict[str, dict[str, Any]]:
    """By the names of the objects that they were brought from, without their module."""
    found = [json.loads(path.read_text()) for path in sorted((folder / "manifests").glob("*.json"))]
    return {each["origin"]["object"]["name"].partition(":")[2]: each for each in found}


def pack_folder(folder: Path, **changes: Any) -> bytes:
    """The capsule of what was brought, with these fields in each manifest."""
    return pack_capsule([each | changes for each in read_manifests(folder).values()], folder).data
