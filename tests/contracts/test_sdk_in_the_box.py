"""SDK in the box: does a tool of a Universe answer in the hub's sandbox what it answers here?"""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, SandboxCall
from tests.support.sandboxes import CONTEXT, docker_sandbox
from unitools.publisher import build_publication
from unitools.universe_loader import load_universe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.base import RunOutcome
    from invocations.sandbox.docker import DockerSandbox
    from unitools.calls import ToolResult

FILE = Path(__file__).resolve().parents[1] / "universes" / "shapes.py"
LOADED = load_universe(FILE)
MADE = build_publication(LOADED)
MANIFESTS = {MADE.names[each["id"]]: each for each in MADE.manifests}
SETTINGS: dict[str, Any] = {"config": {"rate": "1.25"}, "secrets": {"SHOP_KEY": "0123456789"}}
ID = "6f1c9e2a-0000-4000-8000-000000000001"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Order__make", {"id": ID, "day": "2026-02-28", "lines": [{"sku": "a", "quantity": 3, "colours": ["red"]}]}),
    ("Order__make", {"id": ID, "day": "2026-02-28", "lines": [], "price": "2.50", "wait": "PT36H", "note": "mine"}),
    ("adds", {"a": 1}),
    ("adds", {"a": -1, "b": 1e300, "words": ["x", "y", "x"]}),
    ("greets", {"name": "Ada \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "style": "long"}),
    ("says_nothing", {"number": 2**60}),
    ("takes_anything", {"value": {"a": [1, None, {"b": 0.1}], "é": "\u2028"}}),
    ("counts", {"start": 41}),
    ("is_set_up", {"question": "ready?"}),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    made = docker_sandbox()
    yield made
    made.close()


def package() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in sorted(MADE.files.items()):
            archive.writestr(name, content)
    return memory.getvalue()


def boxed(sandbox: DockerSandbox, sdk_dependencies: Path, tool: str, arguments: dict[str, Any]) -> RunOutcome:
    """As the hub runs it: by the manifest's module and entry, in a box that calls of the package share."""
    answers = MANIFESTS[tool]["implementation"]
    call = SandboxCall(
        name=f"inv-{uuid.uuid4().hex}",
        package=package(),
        module=answers["module"],
        entry=answers["entry"],
        arguments=json.dumps(arguments).encode(),
        context=CONTEXT,
        dependencies=sdk_dependencies,
        key=BoxKey("tenant", "shapes", dependencies="sdk"),
        **SETTINGS,
    )
    return sandbox.run(Profile(Limits(), isolation="fresh"), call)


def local(tool: str, arguments: dict[str, Any]) -> ToolResult:
    """Through dispatch, as a model's call; the context holds what the hub has from the tenant."""
    context = {"config.rate": Decimal("1.25"), "secret.SHOP_KEY": "0123456789", "call.currency": "EUR"}
    message = {"role": "assistant", "content": None, "tool_calls": [_openai(tool, arguments)]}
    response = {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
    }

    async def dispatch() -> Any:
        return await LOADED.universe.dispatch(response, context)

    (result,) = anyio.run(dispatch)
    return result  # type: ignore[no-any-return]


def _openai(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


@pytest.mark.req("UNI-2", "UNI-5", "UNI-7", "SVC-9")
def test_every_type_comes_out_of_the_sandbox_as_it_comes_out_of_dispatch(
    sandbox: DockerSandbox, sdk_dependencies: Path
) -> None:
    for tool, arguments in CALLS:
        here, there = local(tool, arguments), boxed(sandbox, sdk_dependencies, tool, arguments)

        assert not here.is_error, (tool, here)
        assert there.status is RunStatus.OK, (tool, there.error_type, there.error_message, there.stderr)
        assert there.value == json.loads(json.dumps(here.value)), tool


@pytest.mark.req("UNI-6")
def test_middlewares_run_in_the_sandbox_too(sandbox: DockerSandbox, sdk_dependencies: Path) -> None:
    there = boxed(sandbox, sdk_dependencies, "Order__make", {"id": ID, "day": "2026-02-28", "lines": []})

    assert there.value["note"] == "stamped"


@pytest.mark.req("UNI-7", "SVC-4")
def test_every_end_of_a_tool_is_the_same_end_in_the_sandbox(sandbox: DockerSandbox, sdk_dependencies: Path) -> None:
    stock = boxed(sandbox, sdk_dependencies, "ends", {"how": "out of stock"})
    own = boxed(sandbox, sdk_dependencies, "ends", {"how": "own code"})
    bug = boxed(sandbox, sdk_dependencies, "ends", {"how": "a bug"})
    other = boxed(sandbox, sdk_dependencies, "ends", {"how": "another type"})
    unknown = boxed(sandbox, sdk_dependencies, "adds", {"a": 1, "counter": "mine"})

    assert (stock.status, stock.error_code, stock.error_message) == (
        RunStatus.DOMAIN_ERROR,
        "OUT_OF_STOCK",
        "Only 3 left.",
    )
    assert stock.error_details == {"available": 3}
    assert (own.status, own.error_code, own.error_message) == (
        RunStatus.DOMAIN_ERROR,
        "CONFLICT",
        "The till is closed.",
    )
    assert own.error_details == {"code": "TILL.CLOSED", "until": "09:00"}
    assert (bug.status, other.status) == (RunStatus.RAISED, RunStatus.BAD_RESULT)
    assert (bug.error_type, bug.error_message) == (
        "KeyError",
        "'what nobody may read'",
    )  # kept sealed, as of a plain function
    assert "what nobody may read" not in local("ends", {"how": "a bug"}).to_content()  # which a model reads
    assert (unknown.status, unknown.error_code) == (RunStatus.DOMAIN_ERROR, "INVALID_ARGUMENT")
    assert [local("ends", {"how": how}).is_error for how in ("out of stock", "own code", "a bug", "another type")] == [
        True
    ] * 4


def test_the_sdk_is_loaded_once_for_all_calls_of_a_box(sandbox: DockerSandbox, sdk_dependencies: Path) -> None:
    first = boxed(sandbox, sdk_dependencies, "adds", {"a": 1})
    second = boxed(sandbox, sdk_dependencies, "adds", {"a": 2})

    assert first.box == second.box
