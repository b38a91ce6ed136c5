"""Public surface: is what unitools offers what it lists, and is nothing loaded for it that is not asked for?"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

import unitools

LOADED = "import json, sys; {}; print(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
SDKS = {"openai", "anthropic", "google", "mcp", "httpx", "django"}


def loaded_by(statement: str) -> set[str]:
    said = subprocess.run([sys.executable, "-c", LOADED.format(statement)], capture_output=True, check=True, text=True)
    return set(json.loads(said.stdout))


@pytest.mark.req("UNI-1")
def test_everything_that_is_listed_is_there_and_says_what_it_is() -> None:
    assert unitools.__all__ == sorted(unitools.__all__)
    for name in unitools.__all__:
        offered: Any = getattr(unitools, name)
        assert offered.__doc__, name
        assert getattr(importlib.import_module(offered.__module__), name) is offered
        assert name in dir(unitools)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        unitools.Nothing  # noqa: B018


def test_the_surface_is_decided_on() -> None:
    assert unitools.__all__ == [
        *(
            "Annotations",
            "CallMessage",
            "Context",
            "Deny",
            "DialectError",
            "Expression",
            "Factory",
            "Injected",
            "Middleware",
        ),
        *(
            "MiddlewareCall",
            "ModelRetry",
            "Name",
            "NeedsApproval",
            "Outcome",
            "Prefix",
            "RegistrationError",
            "Rendered",
            "Results",
        ),
        *(
            "Status",
            "StreamCollector",
            "Tag",
            "ToolCall",
            "ToolError",
            "ToolMetadata",
            "ToolResult",
            "ToolSet",
            "ToolSpec",
            "Universe",
        ),
        *("mask", "middleware"),
    ]


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("import unitools", {"pydantic", "pydantic_core", "anyio", "asyncio", "dataclasses", "typing"}),
        ("from unitools import runtime", {"pydantic", "anyio", "asyncio", "dataclasses"}),
        ("from unitools import Universe; Universe()", {"pydantic", "pydantic_core"} | SDKS),
    ],
)
def test_nothing_is_loaded_that_is_not_asked_for(statement: str, missing: set[str]) -> None:
    assert loaded_by(statement) & missing == set()


def test_a_tool_and_its_rendering_need_no_sdk_of_a_provider() -> None:
    loaded = loaded_by(
        "exec('from unitools import Universe\\nu = Universe()\\n@u.tool\\ndef f(x: int): ...\\nu.tools.render(\"gpt-4o\")')"
    )

    assert "pydantic" in loaded
    assert loaded & SDKS == set()
