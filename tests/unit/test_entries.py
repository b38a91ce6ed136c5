"""Is an entry that is missing, or that could not be called, found without importing its module?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests import manifest
from unitools.entries import entry_problem
from unitools.manifest import Manifest

pytestmark = pytest.mark.req("TOOLS-8")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}


def problem(source: str, **implementation: str) -> str:
    said = manifest(input_schema=SCHEMA, implementation={"module": "shop.prices", **implementation})
    return entry_problem(source.encode(), Manifest(said))


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
        "raise SystemExit  # is not run\ndef run(text, count=1): ...",
    ],
)
def test_an_entry_that_can_be_called_is_taken(source: str) -> None:
    assert problem(source) == ""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "has no function 'run'"),
        ("def runs(text): ...", "has no function 'run'"),
        ("def outer():\n    def run(text, count=1): ...", "has no function 'run'"),
        ("class Run:\n    def run(text, count=1): ...", "has no function 'run'"),
        ("class run: ...", "is a class"),
        ("run = 'text'", "is a value"),
        ("def run(text, count=1)", "is not Python"),
        ("def run(text): ...", "has no parameter 'count'"),
        ("def run(context, text, count=1): ...", "needs 'context'"),
        ("def run(text, count, *, user): ...", "needs 'user', which the input schema does not have"),
        ("def run(text, /, count=1): ...", "by its place only"),
        ("def run(*arguments): ...", "has no parameter 'text'"),
    ],
)
def test_an_entry_that_cannot_be_called_is_named(source: str, says: str) -> None:
    assert says in problem(source)


def test_the_name_is_the_manifests() -> None:
    assert problem("def quote(text, count=1): ...", entry="quote") == ""
    assert "has no function 'quote'" in problem("def run(text, count=1): ...", entry="quote")
