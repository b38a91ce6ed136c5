"""The how-to on unitools: does what the how-to shows run?"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_streams import chat_chunks
from tests.support.sdk_calls import asked, called, run
from unitools import Status

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "write-tools-with-unitools.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


async def metrics(call: Any, next_h: Any) -> Any:
    return await next_h(call)


@pytest.mark.req("UNI-1")
def test_the_how_to_runs_as_it_is_written() -> None:
    response = asked(("balance", {"currency": "USD"}), ("balance", {}))
    names: dict[str, Any] = {"response": response, "chunks": chat_chunks(response), "metrics": metrics}

    async def main() -> None:
        for block in BLOCKS:
            code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            found = eval(code, names)
            if inspect.isawaitable(found):
                await found

    run(main)

    assert [each.value for each in names["results"]] == [None, 1000]
    assert names["results"][0].code == "CURRENCY.UNKNOWN"
    assert [each["tool_call_id"] for each in names["messages"]] == ["id_0", "id_1"]
    assert names["tools"].payload[0]["function"]["name"] == "balance"
    assert called(names["u"], "balance", {"uid": "u1"}, amount=200).status is Status.DENIED
    for name in ("test_only_euros_are_kept_here", "test_progress_is_told"):
        names[name]()
