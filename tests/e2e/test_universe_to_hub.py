"""From a file to a governed tool: is a Universe pushed to a hub, reviewed, and called there with the answers that it gives locally?"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import PATIENCE_S, ROOT, python, run
from unitools.hub import AsyncHubClient, HubClient
from unitools.hub.errors import InvalidArgument, NotFound, OutOfStock, StillRunning
from unitools.universe_loader import load_universe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from unitools.hub.results import Event

FILE = ROOT / "tests" / "universes" / "shapes.py"
DISTRIBUTIONS = (
    "pydantic",
    "pydantic_core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
    "anyio",
    "idna",
)
LATER = {"installer", "requested", "direct_url.json", "record"}  # what an installer writes beside the files
ADDS = "acme.shapes.adds"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("adds", {"a": 1, "words": ["x", "y"]}),
    ("greets", {"name": "Ada", "style": "long"}),
    ("says_nothing", {"number": 1}),
    ("counts", {"start": 41}),
    (
        "Order__make",
        {"id": "6f1c9e2a-0000-4000-8000-000000000001", "day": "2026-02-28", "lines": [{"sku": "a", "quantity": 3}]},
    ),
]


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of what is installed here, so that the hub needs no index; and their lock."""
    folder = tmp_path_factory.mktemp("wheels")
    lock = []
    for name in DISTRIBUTIONS:
        installed = distribution(name)
        wheel = installed.read_text("WHEEL") or ""
        tags = [line.split("-") for line in wheel.splitlines() if line.startswith("Tag:")]
        tag = "-".join(".".join(dict.fromkeys(part.split()[-1] for part in parts)) for parts in zip(*tags, strict=True))
        files = [each for each in installed.files or [] if ".." not in each.parts and each.suffix != ".pyc"]
        written = [each for each in files if each.name.lower() not in LATER]
        info = next(each.parts[0] for each in files if each.parts[0].endswith(".dist-info"))
        record = "".join(f"{each},{each.hash.mode}={each.hash.value},{each.size}\n" for each in written if each.hash)
        path = folder / f"{info.removesuffix('.dist-info')}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for each in written:
                archive.write(str(installed.locate_file(each)), str(each))
            archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lock.append(f"{name}=={installed.version} --hash=sha256:{digest}\n")
    (folder / "requirements.txt").write_text("".join(lock))
    return folder


@pytest.fixture(scope="module")
def pushed(
    prepared: Embedded, wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Embedded, str]]:
    """A hub with the Universe, pushed on the command line, approved and enabled; and what the command printed."""
    hub = copy_of(prepared, tmp_path_factory.mktemp("pushed") / "hub", TOOLHUB_WHEELHOUSE=str(wheelhouse))
    key = run(python("-m", "tests.e2e.publishing", "author"), hub.env)
    with hub.served():
        author = hub.env | {"TOOLHUB_API_KEY": key}
        push = ("-m", "unitools", "push", str(FILE), "--hub", hub.url, "--lock", str(wheelhouse / "requirements.txt"))
        said = run(python(*push), author)
        run(python("-m", "tests.e2e.publishing", "review"), hub.env)
        yield hub, said
    assert hub.count(UNPAIRED) == 0


@dataclass
class Order:
    id: str
    total: str
    note: str | None = None


@pytest.mark.req("UNI-1", "UNI-2", "SVC-9")
def test_a_pushed_universe_answers_as_it_does_here(pushed: tuple[Embedded, str]) -> None:
    hub, said = pushed
    universe = load_universe(FILE).universe
    assert hub.credentials is not None

    with HubClient(hub.url, hub.credentials.key, attempts=60, timeout_s=4 * PATIENCE_S) as client:
        for name, arguments in CALLS:
            answer = client.invoke(f"acme.shapes.{name.lower()}", arguments)
            here = anyio.run(universe.call, name, arguments)
            assert answer.data == json.loads(json.dumps(here.value)), name
            assert (answer.version, answer.sources[0].type) == ("1.0.0", "tool")
        order = client.invoke("acme.shapes.order__make", CALLS[-1][1], into=Order).data
        with pytest.raises(OutOfStock) as refused:
            client.invoke("acme.shapes.ends", {"how": "out of stock"})
        with pytest.raises(InvalidArgument):
            client.invoke(ADDS, {"a": "one"})

    assert (order.total, order.note) == ("3.30", "stamped")
    assert (refused.value.reason, refused.value.details) == ("DOMAIN.OUT_OF_STOCK", {"available": 3})
    assert said.count("acme.shapes.") == 9


@pytest.mark.req("UNI-2", "CONN-6")
def test_a_tool_tells_how_far_it_is_and_asks_the_model_again(pushed: tuple[Embedded, str]) -> None:
    hub, _ = pushed
    assert hub.credentials is not None
    heard: list[Event] = []

    with HubClient(hub.url, hub.credentials.key, timeout_s=4 * PATIENCE_S) as client:
        with pytest.raises(InvalidArgument) as again:
            client.invoke("acme.shapes.converts", {"name": "prices"})
        begun = client.begin("acme.shapes.converts", {"name": "prices.csv"})
        answer = client.wait(begun.call_id, on_event=heard.append)

    told = {kind: [each.data for each in heard if each.kind == kind] for kind in ("progress", "log")}
    assert (again.value.reason, again.value.retryable) == ("DOMAIN.MODEL_RETRY", "after_action")
    assert ".csv or .xlsx" in str(again.value)
    assert told["progress"], heard
    assert "Read •••." in str(told["log"])
    assert "prices" not in str(told["log"])
    assert base64.b64decode(answer.data) == b"prices.csv"


@pytest.mark.req("UNI-4", "UNI-5", "TOOLS-30")
def test_a_client_finds_asks_calls_and_dispatches(pushed: tuple[Embedded, str]) -> None:
    hub, _ = pushed
    assert hub.credentials is not None
    key = hub.credentials.key

    async def use() -> None:
        async with AsyncHubClient(hub.url, key, attempts=60) as client:
            first = await client.invoke(ADDS, {"a": 1}, key="once-1")
            tools = await client.discover(dialect="openai", q="add two numbers")
            again = await client.discover(dialect="openai", q="add two numbers")
            name = next(name for name, tool in tools.names.items() if tool == ADDS)
            function = {"name": name, "arguments": '{"a": 2}'}
            message = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
            response = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
            asked = await client.preflight(ADDS, {"a": 1})
            wrong = await client.preflight(ADDS, {"a": "one"})
            done = await client.dispatch(response)
            second = await client.invoke(ADDS, {"a": 1}, key="once-1")

        assert again is tools
        assert (asked.allow, wrong.allow) == (True, False)
        assert isinstance(wrong.problem, InvalidArgument)
        assert [(each.tool, each.status, each.data) for each in done.calls] == [(ADDS, "ok", 2.5)]
        assert done.messages[0]["tool_call_id"] == "c1"
        assert (first.call_id, first.replayed, second.replayed) == (second.call_id, False, True)

    anyio.run(use)


@pytest.mark.req("TOOLS-32")
def test_a_call_that_takes_long_is_begun_waited_for_and_cancelled(pushed: tuple[Embedded, str]) -> None:
    hub, _ = pushed
    assert hub.credentials is not None

    with HubClient(hub.url, hub.credentials.key) as client:
        begun = client.begin("sample.tools.sleeps", {"text": "x"})
        with pytest.raises(StillRunning):
            client.wait(begun.call_id, timeout_s=0.5)
        state = client.cancel(begun.call_id)
        echoed = client.begin("sample.tools.echo", {"text": "later"})
        heard: list[str] = []
        answer = client.wait(echoed.call_id, on_event=lambda event: heard.append(event.kind))
        with pytest.raises(NotFound):
            client.wait("inv_0000000000000000000000000a", timeout_s=5)

    assert state in ("cancelled", "running")
    assert answer.call_id == echoed.call_id
    assert "evidence" in heard
