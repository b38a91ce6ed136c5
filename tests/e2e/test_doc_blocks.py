"""Code blocks of the docs: do the commands and programs that the README and the how-tos show work, against a hub, as they are
written?

What a page finds (files, names, other values) stands in :data:`PAGES_FIND`; a new page usually needs nothing there. Every ``curl``
has to be answered with a 2xx, every command to end with 0. ``HUB``, ``KEY``, ``ADMIN``, ``AGENT``, ``CALL`` and the tutorial's
function ``hub`` are there, in ``cookies.txt`` and ``TOKEN`` the session of an owner, and what else tests/e2e/doc_world.py makes.
"""

from __future__ import annotations

import ast
import base64
import hmac
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from http.cookiejar import MozillaCookieJar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.e2e.conftest import Embedded, copy_of
from tests.e2e.console import Person
from tests.e2e.processes import python, run
from tests.support.chat_provider import answer_request
from tests.support.doc_blocks import ALL, PAGES, PYTHON, ROOT, SHELL, Block, blocks_of
from tests.support.model_servers import model_server
from tests.support.model_streams import chat_chunks
from tests.support.sdk_calls import asked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHOP = ROOT / "tools" / "commerce"
QUOTES = '''
from typing import Annotated

from unitools import Injected, Universe

u = Universe("acme.shares", version="1.0.0")


@u.tool("Quote.get", ttl_seconds=60)
def get_quote(symbol: str, *, rate: Annotated[str, Injected("config.rate")]) -> str:
    """The latest price of a share."""
    return f"{symbol} {rate}"
'''
CATALOGUE = [{"tool_id": "search", "description": "Search.", "implementation_path": "search.py"}]


async def metrics(call: Any, next_h: Any) -> Any:
    return await next_h(call)


@dataclass(frozen=True, slots=True)
class Finds:
    """What a page finds: ``files`` in its folder, ``names`` of its programs, ``env``; ``instead`` of words that are examples."""

    files: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)


PAGES_FIND: dict[str, Finds] = {
    "configure-from-a-file.md": Finds(instead={"--tenant acme": "--tenant demo"}),
    "explain-a-call.md": Finds(env={"KEY": "$BUYERS_KEY"}),
    "give-tools-files.md": Finds(files={"june.csv": "day,sum\n1,2\n"}),
    "hand-a-grant-to-another-agent.md": Finds(env={"AGENT": "$HELPER"}),
    "set-budgets.md": Finds(env={"AGENT": "$HELPER"}),
    "people-and-sign-in.md": Finds(instead={"reset_sign_in olga": "reset_sign_in dana"}),
    "publish-a-universe.md": Finds(
        files={
            "quotes.py": QUOTES,
            "search.py": "def run(q): return q\n",
            "capabilities.json": json.dumps(CATALOGUE),
        }
    ),
    "publish-a-version.md": Finds(
        files={
            "new.json": (SHOP / "manifests" / "commerce.pricing.get_realtime_quote.json")
            .read_text()
            .replace('"version": "1.0.0"', '"version": "2.0.0"')
        }
    ),
    "sign-and-publish-tools.md": Finds(
        files={
            "acme_quotes/__init__.py": "",
            "acme_quotes/tools.py": "def run(symbol: str) -> dict[str, str]:\n    return {'symbol': symbol}\n",
            "acme_quotes/manifests/get.json": json.dumps(
                {
                    "id": "acme.quotes.get",
                    "version": "1.0.0",
                    "display_name": "Get",
                    "description": "The latest price of a share.",
                    "input_schema": {
                        "type": "object",
                        "properties": {"symbol": {"type": "string"}},
                        "additionalProperties": False,
                    },
                    "output_schema": {"type": "object"},
                    "side_effect": "None",
                    "implementation": {"module": "acme_quotes.tools", "entry": "run"},
                }
            ),
        }
    ),
    "stream-events.md": Finds(
        names={
            "request": SimpleNamespace(
                headers={"content-type": "application/cloudevents+json"},
                body=json.dumps(
                    {"specversion": "1.0", "id": "fct_1", "source": "https://hub.example", "type": "t"}
                ).encode(),
            )
        }
    ),
    "move-from-the-tool-service.md": Finds(
        files={"search.py": "def run(q): return q\n", "capabilities.json": json.dumps(CATALOGUE)},
        env={"TOOLHUB_API_KEY": "$KEY"},
        instead={"--as old.tools": "--as older.tools"},
    ),
    "use-googles-sdk.md": Finds(instead={"model.openai.main": "model.house.talks"}),
    "long-calls.md": Finds(env={"KEY": "$BOOKKEEPERS_KEY"}),
    "notifications.md": Finds(
        names={"headers": {"webhook-id": "m", "webhook-timestamp": "1"}, "body": "{}", "secret": "whsec_AAAA"}
        | {"base64": base64, "hmac": hmac}
    ),
    "write-tools-with-unitools.md": Finds(
        names={
            "response": asked(("balance", {"currency": "USD"}), ("balance", {})),
            "chunks": list(chat_chunks(asked(("balance", {})))),
            "metrics": metrics,
        }
    ),
}
PROGRAMS = {
    "curl": 'exec /usr/bin/curl --fail-with-body --noproxy "*" "$@"',
    "manage.py": f'exec {sys.executable} {ROOT}/manage.py "$@"',
    "python": f'exec {sys.executable} "$@"',
    "unitools": f'PYTHONPATH={ROOT} exec {sys.executable} -m unitools "$@"',
}
TUTORIAL = ROOT / "docs" / "tutorial" / "first-governed-call.md"
FUNCTION = re.search(r"^hub\(\) .*$", TUTORIAL.read_text(), re.MULTILINE)


@dataclass(frozen=True, slots=True)
class World:
    hub: Embedded
    values: dict[str, str]
    programs: Path
    cookies: Path


@pytest.fixture(scope="module")
def world(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One hub for all pages, and the keys that they assume."""
    folder = tmp_path_factory.mktemp("docs")
    programs = folder / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    hub = copy_of(prepared, folder / "hub", TOOLHUB_OUTBOUND_NETWORKS="127.0.0.0/8")
    values = json.loads(run(python("-m", "tests.e2e.doc_world"), hub.env))
    with model_server(answer_request) as provider, hub.served():
        run(python("-m", "tests.e2e.model_world", provider.url), hub.env)
        quote = {"sku": "LAPTOP-14", "quantity": 1, "currency": "EUR"}
        values["CALL"] = hub.agent.invoke("commerce.pricing.get_realtime_quote", quote).call_id
        assert hub.credentials
        cookies = MozillaCookieJar(folder / "cookies.txt")
        with Person(hub.url, "oona", hub.credentials.password("oona"), cookies) as oona:
            values["TOKEN"] = oona.token("/")
        cookies.save(ignore_discard=True)
        yield World(hub, values | {"HUB": hub.url}, programs, folder / "cookies.txt")


def test_the_demonstration_tells_its_story_and_that_the_last_call_was_answered_again(world: World) -> None:
    told = run(python("scripts/demo.py"), world.hub.env | {"TOOLHUB_PUBLIC_URL": world.hub.url})

    assert re.search(r"replayed\s+true", told), told


def finds_of(page: Path) -> Finds:
    return PAGES_FIND.get(page.name, Finds())


def as_here(text: str, page: Path, world: World) -> str:
    """The addresses and keys of the examples are those of this hub."""
    here = {
        "http://127.0.0.1:8000": world.hub.url,
        "https://hub.example.org": world.hub.url,
        "hub_…": world.values["KEY"],
        **finds_of(page).instead,
    }
    for word, other in here.items():
        text = text.replace(word, other)
    return text


@pytest.fixture
def folder(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Path:
    """Where the page's commands are typed: it looks like the clone, with the files of the page."""
    page: Path = request.getfixturevalue("page")
    for name in (".venv", "manage.py", "unitools", "evidence", "packaging", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "cookies.txt").symlink_to(world.cookies)
    shown = {block.file: as_here(block.text, page, world) for block in ALL if block.page == page and block.file}
    for name, text in (finds_of(page).files | shown).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def blocks(languages: tuple[str, ...]) -> dict[Path, list[Block]]:
    found = {page: [block for block in ALL if block.page == page and block.is_run(languages)] for page in PAGES}
    return {page: run for page, run in found.items() if run}


def run_commands(script: list[str], env: dict[str, str], folder: Path) -> str:
    """What the commands print; a test fails with one that fails."""
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=180,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("page", blocks(SHELL), ids=lambda page: page.name)
def test_the_commands_of_a_page_work_as_they_are_written(page: Path, world: World, folder: Path) -> None:
    assert FUNCTION is not None
    script = ["set -euo pipefail", "trap 'echo \"failed at $at: $BASH_COMMAND\" >&2' ERR", FUNCTION[0]]
    for block in blocks(SHELL)[page]:
        script += [f"at={block.place}", as_here(block.text, page, world)]
    env = world.hub.env | world.values
    env |= {name: world.values[value[1:]] for name, value in finds_of(page).env.items()}
    env |= {"PATH": f"{world.programs}{os.pathsep}{env['PATH']}"}

    run_commands(script, env, folder)


def test_the_tutorial_answers_what_it_shows(own_hub: Embedded, tmp_path: Path) -> None:
    """Its commands in their order, with the decision of the person between them. What it shows as output comes, line by line."""
    assert own_hub.credentials
    shown = blocks_of(TUTORIAL)
    setup, look, order, request, again, facts = (block.text for block in shown if block.language in SHELL)
    tool, headers, kinds = (block.text for block in shown if block.language == "")
    (tmp_path / "var").symlink_to(own_hub.data)

    def type_in(*commands: str) -> str:
        """In a terminal that knows what was set up in it."""
        script = ["set -euo pipefail", setup.replace("http://127.0.0.1:8000", own_hub.url), *commands]
        return run_commands(script, own_hub.env | {"no_proxy": "*"}, tmp_path).replace("\r", "")

    with own_hub.served():
        assert textwrap.dedent(type_in(look)) == tool
        assert json.loads(type_in(order))["error"]["reason"] == "POLICY.CONSENT_REQUIRED"
        consent = json.loads(type_in(request))["data"]
        with Person(own_hub.url, "olivia", own_hub.credentials.password("olivia")) as olivia:
            assert "Approve for a time" in olivia.open(f"/consents/{consent['id']}")[1]
            olivia.decide(f"/consents/{consent['id']}", mode="period", reason="The tutorial asks for it.")
        made = json.loads(type_in(order))
        assert made["data"]["total"] == "195.61"
        call = made["call"]["call_id"]
        assert type_in(order, "echo ---", again).partition("---\n")[2] == re.sub(r"inv_\w+", call, headers)
        assert type_in(facts.replace("CALL=inv_…", f"CALL={call}")) == kinds


@pytest.mark.parametrize("page", blocks(PYTHON), ids=lambda page: page.name)
def test_the_programs_of_a_page_run_as_they_are_written(
    page: Path, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("KEY", world.values["KEY"])
    names: dict[str, Any] = {"__name__": "shown", **finds_of(page).names}

    for block in blocks(PYTHON)[page]:
        text = as_here(block.text, page, world)
        # As a program of its own, which does not put off its annotations as this file does.
        code = compile(text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            anyio.run(eval, code, names)
        else:
            exec(code, names)
