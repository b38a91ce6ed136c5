"""Response dispatch: do the tools of a Universe get what the corpus means, whoever's model calls them, and nothing of a bad
answer?
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.support.bfcl_corpus import CALLS, cases
from tests.support.model_responses import (
    FORMS,
    KEY,
    chat,
    contents,
    messages,
    requests,
    responses,
    said_in_chat,
    tagged,
)
from unitools import Universe
from unitools.calls import Status
from unitools.dialects import DialectError, find_driver

if TYPE_CHECKING:
    from collections.abc import Iterable


class Recorder:
    """A Universe whose tools take anything and write down what they got."""

    def __init__(self, parameters: dict[str, set[str]], **said: Any) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.universe = Universe()
        for name, each in parameters.items():
            self.universe.tool(name, **said)(self.tool(name, each))

    def tool(self, name: str, parameters: Iterable[str]) -> Any:
        async def record(**arguments: Any) -> None:
            self.got.append((name, {key: value for key, value in arguments.items() if value is not MISSING}))

        keywords = [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=MISSING, annotation=Any)
            for each in sorted(parameters)
        ]
        record.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        record.__annotations__ = dict.fromkeys(parameters, Any)
        return record


MISSING = "(left out)"


async def dispatch_the_corpus(step: int) -> int:
    """Every step-th case in every form; says how many calls arrived as they were meant."""
    arrived = 0
    for case in cases()[::step]:
        parameters: dict[str, set[str]] = {tool.name: set() for tool in case.tools}
        for name, arguments in case.calls:
            parameters.setdefault(name, set()).update(arguments)
        recorder = Recorder(parameters)
        sets = {
            dialect: recorder.universe.tools.render(dialect) for dialect in {form.dialect for form in FORMS.values()}
        }
        for name, form in FORMS.items():
            recorder.got.clear()
            said = {tool: rendered for rendered, tool in sets[form.dialect].names.items()}
            calls = [(said[tool], arguments) for tool, arguments in case.calls]
            text = tagged(calls, sets["xml"].key)
            response = {"xml text": text, "xml inside a chat": said_in_chat(text)}.get(name) or form.build(calls)

            results = await recorder.universe.dispatch(response, parallel=1)  # one after the other

            assert [result.status for result in results] == [Status.OK] * len(case.calls), (case.id, name)
            assert recorder.got == list(case.calls), (case.id, name)
            assert len(results.to_messages()) > 0
            arrived += len(results)
    return arrived


@pytest.mark.req("UNI-5")
def test_tools_get_what_each_providers_model_means() -> None:
    assert anyio.run(dispatch_the_corpus, 40) > len(FORMS) * CALLS // 60


@pytest.mark.req("UNI-5")
@pytest.mark.long
def test_tools_get_all_of_the_corpus_from_each_providers_model() -> None:
    assert anyio.run(dispatch_the_corpus, 1) == len(FORMS) * CALLS


CUT = [("wipe", {"n": 1})]


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize(
    "response",
    [
        chat(CUT, "length"),
        chat([("wipe", '{"n": 1')]),
        chat([("wipe", '{"n": 1,}')]),
        chat([("wipe", '{"n": NaN}')]),
        chat([("wipe", '{"n": 1, "n": 2}')]),
        chat([("wipe", '{"n":' + "[" * 1024 * 1024)]),
        chat([("wipe", "")]),
        responses(CUT, "incomplete"),
        messages(CUT, "max_tokens"),
        contents(CUT, "MAX_TOKENS"),
        requests([("wipe", {"n": float("nan")})]),
        tagged(CUT, b"another key"),
        "```\n" + tagged(CUT) + "\n```",
        tagged(CUT)[:-1],
        {"tool": "wipe", "n": 1},
        {**chat(CUT), **contents(CUT)},
        "[" * 1024 * 1024,
        '{"choices": [{"index": NaN}]}',
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_nothing_runs_of_an_answer_that_is_cut_broken_or_of_no_dialect(response: Any) -> None:
    recorder = Recorder({"wipe": {"n"}}, destructive=True)
    recorder.universe._key = KEY

    async def dispatch() -> None:
        results = await recorder.universe.dispatch(response)
        assert all(result.is_error and result.message and not result.executed for result in results)

    try:
        anyio.run(dispatch)
    except DialectError as error:
        assert str(error).endswith(".")

    assert recorder.got == []


@pytest.mark.req("UNI-5")
@pytest.mark.parametrize("build", [chat, responses, messages])
def test_of_two_calls_with_one_id_the_first_runs_and_both_are_answered(build: Any) -> None:
    recorder = Recorder({"save": {"n"}})
    body = build([("save", {"n": 1}), ("save", {"n": 2})])
    response = json.loads(json.dumps(body).replace("call_1x", "call_0x").replace("toolu_1", "toolu_0"))

    results = anyio.run(recorder.universe.dispatch, response)

    assert [result.status for result in results] == [Status.OK, Status.INVALID_ARGUMENTS]
    assert recorder.got == [("save", {"n": 1})]
    assert "same id" in json.dumps(find_driver(results.driver.dialect).reply(results))
