"""Python files: do tools come of a file as its author wrote them, and is what is wrong named at its line?"""

from __future__ import annotations

from typing import Any

import pytest

from registry.submissions.placed_findings import find_line, mark_source, write_document
from registry.submissions.python_files import PythonFile, read_python_file

GREETING = '''\
from typing import Literal


def hello(
    name: str,
    language: Literal["en", "zh"] = "en",
    times: int | None = None,
    *,
    extra: dict[str, list[float]],
) -> dict[str, str]:
    """Greets somebody by name.

    Args:
        name: Whom to greet.
    """
    return {"greeting": name}


def _helper() -> None: ...
'''


def read(source: str, name: str = "hello.py") -> PythonFile:
    return read_python_file(name, source, group="greeting.words", version="1.0.0")


@pytest.mark.req("CARD-3")
def test_a_public_function_becomes_a_tool_with_the_schema_of_its_signature() -> None:
    made = read(GREETING)

    (function,) = made.functions
    assert made.findings == []
    assert sorted(made.files) == ["greeting_words/__init__.py", "greeting_words/hello.py"]
    said: dict[str, Any] = function.document
    assert said["id"] == "greeting.words.hello"
    assert said["implementation"] == {"module": "greeting_words.hello", "entry": "hello"}
    assert said["description"] == "Greets somebody by name."
    assert said["input_schema"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "extra"],
        "properties": {
            "name": {"type": "string", "description": "Whom to greet."},
            "language": {"enum": ["en", "zh"], "default": "en"},
            "times": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
        },
    }
    assert said["output_schema"] == {"type": "object", "additionalProperties": {"type": "string"}}


def test_pointers_of_the_manifest_lead_to_lines_of_the_source() -> None:
    (function,) = read(GREETING).functions

    found = {each: function.find_line(each) for each in ("/input_schema/properties/times/type", "/description", "/id")}

    assert found == {"/input_schema/properties/times/type": 7, "/description": 11, "/id": 4}


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("def broken(:\n    pass\n", 1, "This is not Python"),
        ("x = 1\n", 1, "There is no function at the top"),
        ("from unitools import Universe\n\nu = Universe('acme.shop')\n", 3, "A Universe makes its tools while it runs"),
        ("def f(a: str,\n      *rest: str) -> str:\n    '''Says.'''\n", 2, "rest cannot be given by name."),
        ("def f(a: str) -> str:\n    return a\n", 1, "f has no docstring."),
        ("def f(\n    a,\n) -> str:\n    '''Says.'''\n", 2, "a has no type that can be read here"),
        ("import os\n\ndef f() -> str:\n    '''Says.'''\n    return os.environ['API_KEY']\n", 5, "It reads API_KEY"),
        (
            "def f() -> str:\n    '''Says.'''\n    return 'x' + 'https://api.example.org/v1'\n",
            3,
            "It names the host api.example.org",
        ),
    ],
)
def test_what_is_wrong_is_named_at_its_line(source: str, line: int, said: str) -> None:
    found = [each for each in read(source).findings if each.message.startswith(said)]

    assert [each.line for each in found] == [line]
    assert all(each.fix for each in found)
    (marked,) = [each for each in mark_source("s", "hello.py", source, found).lines if each.findings]
    assert (marked.number, marked.text) == (line, source.split("\n")[line - 1])


def test_a_document_is_written_with_the_line_of_each_pointer() -> None:
    document = {"id": "a.b.c", "tags": ["x", "y"], "empty": {}, "deep": {"a/b": [{"c": 1}]}}

    text, places = write_document(document)

    assert text.split("\n")[places["/tags/1"] - 1] == '    "y"'
    assert text.split("\n")[places["/deep/a~1b/0/c"] - 1].strip() == '"c": 1'
    assert find_line("/tags/9/more", places) == places["/tags"]
    import json

    assert json.loads(text) == document


@pytest.mark.req("CARD-3", "TOOLS-6")
@pytest.mark.parametrize(
    "written", [" | ".join(["int"] * 1_200), '"' + "|".join(["int"] * 1_200) + '"', '"' + "-" * 20_000 + '1"']
)
def test_a_type_with_more_parts_than_can_be_read_is_a_finding_at_its_line(written: str) -> None:
    made = read(f'def hello(\n    name: str,\n    age: {written},\n) -> {written}:\n    """Greets."""\n')

    (found,) = made.findings
    assert (found.line, found.severity) == (3, "warning")
    assert found.message.startswith("age has no type that can be read here")
    assert made.functions[0].document["input_schema"]["properties"] == {"name": {"type": "string"}, "age": {}}
