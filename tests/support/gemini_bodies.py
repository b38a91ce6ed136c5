"""Gemini bodies: what tests read and write as Google has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llm.served.gemini_contents import GeminiContents
from tests.support.served_answers import ABOUT, build_deltas
from tests.support.served_formats import build_contents, parse_chunks

if TYPE_CHECKING:
    from kernel.problems import Problem

CONTENTS = GeminiContents("main")
HI = build_contents("Hi")["contents"]


def find_pointers(problem: Problem) -> list[str]:
    return [each["pointer"] for each in problem.details["findings"]]


def stream(answered: dict[str, Any]) -> list[dict[str, Any]]:
    """The pieces of it, which are the same in both forms."""
    forms = []
    for as_array in (False, True):
        writer = CONTENTS.open_stream(ABOUT, {"as_array": as_array})
        said = "".join([*map(writer.add, build_deltas(answered)), writer.end(answered)])
        forms.append(json.loads(said) if as_array else parse_chunks(said))
    assert forms[0] == forms[1]
    return forms[0]
