"""Entries: is an entry that is missing, or that could not be called, found without importing its module?"""

from __future__ import annotations

import ast
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.manifests import manifest
from unitools.entries import entry_problem
from unitools.manifest import Manifest

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}


def problem(source: str, **implementation: str) -> str:
    said = manifest(input_schema=SCHEMA, implementation={"module": "shop.prices", **implementation})
    return entry_problem(source.encode(), Manifest(said))


@pytest.mark.req("TOOLS-8")
@pytest.mark.parametrize(
    "source",
    [
        "def run(text, count=1): ...",
        "async def run(text: str, *, count: int = 1) -> str: ...",
        "def run(**arguments): ...",
        "def run(text, **more): ...",
        "@tool\ndef run(anything): ...",  # only running tells what a decorator makes of it
        "from shop.others import run",
        "from shop.others import quote as run",
        "from shop.others import *",
        "run = partial(quote, 1)",
        "try:\n    import fast\nexcept ImportError:\n    def run(text, count=1): ...\nelse:\n    run = fast.run",
        "if True:\n    def run(text, count=1): ...",
        "def run(): ...\ndef run(text, count=1): ...",  # the last one is it
        "from typing import Any\nmatch object():\n    case run: ...",
        "try:\n    from fast import run\nexcept* ImportError:\n    def run(text, count=1): ...",
        "try:\n    raise\nexcept* ImportError:\n    def run(text, count=1): ...",
        "print(run := quote)",
        "with opened() as run: ...",
        "for run in (quote,): ...",
        "def __getattr__(name): return quote",
        "globals()['run'] = quote",
        "def run(): ...\nglobals()['run'] = quote",
        "import sys\nsetattr(sys.modules[__name__], 'run', quote)",
        "def make():\n    global run\n    run = quote\nmake()",
        "if DEBUG:\n    def run(text, count=1): ...\nelse:\n    run = None",
        "run = None\nif DEBUG:\n    def run(text, count=1): ...",
        "def run(): ...\nif DEBUG:\n    def run(text, count=1): ...",
        "run: object\ndef run(text, count=1): ...",
        "if a: pass\n" + "elif a: pass\n" * 1200 + "def run(text, count=1): ...",
        "raise SystemExit  # is not run\ndef run(text, count=1): ...",
    ],
)
def test_an_entry_that_can_be_called_is_taken(source: str) -> None:
    assert problem(source) == ""


@pytest.mark.req("TOOLS-8")
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "has no function 'run'"),
        ("def runs(text): ...", "has no function 'run'"),
        ("def outer():\n    def run(text, count=1): ...", "has no function 'run'"),
        ("class Run:\n    def run(text, count=1): ...", "has no function 'run'"),
        ("class run: ...", "is a class"),
        ("run = 'text'", "is a value"),
        ("run: object", "has no function 'run'"),
        ("print([run for run in ()], lambda: (run := 1))", "has no function 'run'"),
        ("if DEBUG:\n    def run(text): ...\nelse:\n    run = None", "is a value"),
        ("def run(text, count=1): ...\nrun = None", "is a value"),
        ("def run(text, count=1)", "is not Python"),
        ("x = " + "-" * 100_000 + "1\ndef run(text, count=1): ...", "nested too deeply"),
        ("x = " + "(" * 150 + "1" + ")" * 150, "has no function 'run'"),
        ("x = " + "1+" * 100_000 + "1\ndef run(text, count=1): ...", "nested too deeply"),
        ("#" * 262_145, "has 262,145 bytes; the module of an entry has at most 262,144. Move the rest"),
        ("def run(text): ...", "has no parameter 'count'"),
        ("def run(context, text, count=1): ...", "needs 'context'"),
        ("def run(text, count, *, user): ...", "needs 'user', which the input schema does not have"),
        ("def run(text, /, count=1): ...", "by its place only"),
        ("def run(*arguments): ...", "has no parameter 'text'"),
    ],
)
def test_an_entry_that_cannot_be_called_is_named(source: str, says: str) -> None:
    assert says in problem(source)


@pytest.mark.req("TOOLS-8")
def test_a_property_that_is_never_there_needs_no_parameter() -> None:
    said = manifest(
        input_schema=SCHEMA | {"properties": SCHEMA["properties"] | {"old": False}},
        implementation={"module": "shop.prices"},
    )

    assert entry_problem(b"def run(text, count=1): ...", Manifest(said)) == ""


@pytest.mark.req("TOOLS-8")
def test_the_module_of_many_tools_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = Mock(side_effect=ast.parse)
    monkeypatch.setattr(ast, "parse", parse)
    source = "\n".join(f"def once_{number}(text, count=1): ..." for number in range(50))

    assert {problem(source, entry=f"once_{number}") for number in range(50)} == {""}
    assert parse.call_count == 1


@pytest.mark.req("TOOLS-8")
def test_the_name_is_the_manifests() -> None:
    assert problem("def quote(text, count=1): ...", entry="quote") == ""
    assert "has no function 'quote'" in problem("def run(text, count=1): ...", entry="quote")
