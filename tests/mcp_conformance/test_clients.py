"""Clients: do the programs with which people speak MCP list and call tools through the hub?"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers
from scripts.provision.processes import free_port
from tests.e2e.processes import clean_environment
from tests.mcp_conformance.arrange import LISTED, NAMED, PREFIX
from tests.mcp_conformance.issuer import SECRET

if TYPE_CHECKING:
    from tests.mcp_conformance.conftest import Served


CLIENTS = Path(__file__).parent / "clients"
PATIENCE_S = 120.0
MODERN, LANGCHAIN = "fastmcp-and-openai-agents", "langchain"
GREET, GREET_ID, NAME = f"{NAMED}greet", f"{PREFIX}greet", {"name": "you"}
GREETED = {"text": "Hello, you!"}
PROGRAMS = [
    ("with_mcp", "", "legacy", GREET),
    ("with_mcp", "", "auto", GREET),
    ("with_fastmcp", MODERN, "", GREET),
    ("with_openai_agents", MODERN, "", GREET),
    ("with_langchain", LANGCHAIN, "", GREET),
    # As programs call that were written while names were ids. The hub reads either name in one place, whoever sends it.
    ("with_mcp", "", "legacy", GREET_ID),
    ("with_mcp", "", "auto", GREET_ID),
    pytest.param("with_fastmcp", MODERN, "", GREET_ID, marks=pytest.mark.long),
    pytest.param("with_openai_agents", MODERN, "", GREET_ID, marks=pytest.mark.long),
]


def printed(words: list[str], home: Path) -> Any:
    """What a program says, read as JSON."""
    env = clean_environment(HOME=str(home), NO_PROXY="*")
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, cwd=home
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def origins(served: Served) -> int:
    return served.hub.count("SELECT count(*) FROM invocations_invocation WHERE origin = 'mcp' AND state = 'succeeded'")


@pytest.mark.req("CONN-3", "SVC-1")
@pytest.mark.parametrize(("program", "environment", "mode", "tool"), PROGRAMS)
def test_a_python_client_lists_and_calls(
    program: str, environment: str, mode: str, tool: str, served: Served, tmp_path: Path
) -> None:
    python = str(peers.ensure_python(environment)) if environment else sys.executable
    before = origins(served)
    words = [python, str(CLIENTS / f"{program}.py"), served.url, served.key, tool, json.dumps(NAME)]

    said = printed(words + [mode] * bool(mode), tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}
    assert origins(served) == before + 1


def browser(served: Served) -> list[str]:
    """What opens an address as a person who lets in whoever asks."""
    return [sys.executable, str(CLIENTS.parent / "scripted_browser.py"), served.agent, served.password]


@pytest.mark.req("CONN-1")
def test_fastmcp_given_the_url_alone_opens_the_browser_and_works(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", f"{shlex.join(browser(served))} %s &")
    python, before = str(peers.ensure_python(MODERN)), origins(served)
    words = [python, str(CLIENTS / "with_fastmcp.py"), served.url, "oauth", GREET, json.dumps(NAME)]

    assert printed(words, tmp_path) == {"tools": LISTED, "value": GREETED}
    assert origins(served) == before + 1


@pytest.mark.req("CONN-1")
def test_fastmcp_names_itself_by_its_document_and_works(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", f"{shlex.join(browser(served))} %s &")
    client_id, python = served.documents.build_id("fastmcp"), str(peers.ensure_python(MODERN))

    said = printed([python, str(CLIENTS / "with_fastmcp.py"), served.url, client_id, GREET, json.dumps(NAME)], tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}
    assert served.count_connections(client_id, kind="document") == 1


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("generation", ["1", "2"])
def test_both_typescript_sdks_given_the_url_alone_open_the_browser_and_work(
    generation: str, served: Served, tmp_path: Path
) -> None:
    modules, before = peers.ensure_node_modules(), origins(served)
    words = [str(peers.find_node()), str(CLIENTS / "with_typescript.mjs"), str(modules), generation, served.url]

    said = printed([*words, GREET, json.dumps(NAME), json.dumps(browser(served))], tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}
    assert origins(served) == before + 1


@pytest.mark.req("CONN-1", "CONN-2")
@pytest.mark.parametrize("generation", ["1", "2"])
def test_both_typescript_sdks_name_themselves_by_their_document_and_work(
    generation: str, served: Served, tmp_path: Path
) -> None:
    client_id, modules = served.documents.build_id(f"typescript-{generation}"), peers.ensure_node_modules()
    words = [str(peers.find_node()), str(CLIENTS / "with_typescript.mjs"), str(modules), generation, served.url]

    said = printed([*words, GREET, json.dumps(NAME), json.dumps(browser(served)), client_id], tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}
    assert served.count_connections(client_id, kind="document") == 1


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("generation", ["1", "2"])
def test_both_typescript_sdks_come_with_an_id_and_a_secret_that_were_entered_by_hand(
    generation: str, served: Served, tmp_path: Path
) -> None:
    entered = {"client_id": served.client_id, "client_secret": served.client_secret}
    words = [str(peers.find_node()), str(CLIENTS / "with_typescript.mjs"), str(peers.ensure_node_modules())]
    before = served.count_connections(served.client_id, kind="entered")

    said = printed(
        [*words, generation, served.url, GREET, json.dumps(NAME), json.dumps(browser(served)), "", json.dumps(entered)],
        tmp_path,
    )

    assert said == {"tools": LISTED, "value": GREETED}
    assert served.count_connections(served.client_id, kind="entered") == before + 1


@pytest.mark.req("CONN-2", "SVC-1")
@pytest.mark.parametrize("how", ["credentials", "header"])
@pytest.mark.parametrize("generation", ["1", "2"])
def test_both_typescript_sdks_use_the_key_of_an_agent(
    generation: str, how: str, served: Served, tmp_path: Path
) -> None:
    words = [str(peers.find_node()), str(CLIENTS / "with_typescript_key.mjs"), str(peers.ensure_node_modules())]
    before = origins(served)

    said = printed([*words, generation, served.url, GREET, json.dumps(NAME), how, served.agent, served.key], tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}
    assert origins(served) == before + 1


@pytest.mark.req("CONN-2")
def test_the_typescript_sdk_comes_by_what_the_identity_provider_says_of_the_person(
    served: Served, tmp_path: Path
) -> None:
    enterprise = {
        "issuer": served.issuer,
        "secret": SECRET,
        "clientId": served.client_id,
        "clientSecret": served.client_secret,
    }
    words = [str(peers.find_node()), str(CLIENTS / "with_typescript_assertion.mjs"), str(peers.ensure_node_modules())]

    said = printed([*words, served.url, GREET, json.dumps(NAME), json.dumps(enterprise)], tmp_path)

    assert said == {"tools": LISTED, "value": GREETED}


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("by_document", [True, False], ids=["by its document", "by registration"])
def test_the_inspector_given_the_url_alone_signs_a_person_in_and_works(
    by_document: bool, served: Served, tmp_path: Path
) -> None:
    inspector = peers.ensure_node_modules() / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    client_id = served.documents.build_id("inspector")
    words = [str(peers.find_node()), str(inspector), "--cli", served.url, "--format", "json"]
    words += ["--callback-url", f"http://127.0.0.1:{free_port()}/callback"]
    words += ["--client-metadata-url", client_id] if by_document else []
    before = served.count_connections(client_id, kind="document")

    called = printed_with_a_person(
        [*words, "--method", "tools/call", "--tool-name", GREET, "--tool-args-json", json.dumps(NAME)],
        browser(served),
        tmp_path,
    )

    assert called["result"]["structuredContent"] == GREETED
    assert called["result"]["isError"] is False
    assert served.count_connections(client_id, kind="document") == before + by_document


def printed_with_a_person(words: list[str], browser: list[str], home: Path) -> Any:
    """As :func:`printed`, of a program that writes to its errors where a person is to go, and waits for them to have been there."""
    # It asks nobody where there is no terminal, unless it may open a browser; the one that it opens shows nothing.
    env = clean_environment(HOME=str(home), NO_PROXY="*", MCP_AUTO_OPEN_ENABLED="true", BROWSER="true")
    said = home / "stdout.json"
    with said.open("wb") as output:
        program = subprocess.Popen(
            words, env=env, stdout=output, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=home, text=True
        )
    watchdog = threading.Timer(PATIENCE_S, program.kill)
    watchdog.start()
    try:
        assert program.stderr is not None
        heard = []
        for line in program.stderr:
            heard.append(line)
            if found := re.search(r"Please navigate to: (\S+)", line):
                subprocess.run([*browser, found[1]], env=env, check=True, timeout=PATIENCE_S, capture_output=True)
        assert program.wait() == 0, said.read_text() + "".join(heard)
    finally:
        watchdog.cancel()
        program.kill()
        program.communicate()
    return json.loads(said.read_text())


@pytest.mark.req("CONN-3", "SVC-1")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_and_calls(era: str, served: Served, tmp_path: Path) -> None:
    inspector = peers.ensure_node_modules() / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    words = [str(peers.find_node()), str(inspector), "--cli", served.url, "--protocol-era", era, "--format", "json"]
    words += ["--header", f"Authorization: Bearer {served.key}", "--method"]

    listed = printed([*words, "tools/list", "--strict"], tmp_path)
    called = printed([*words, "tools/call", "--tool-name", GREET, "--tool-args-json", json.dumps(NAME)], tmp_path)

    assert [each["name"] for each in listed["result"]["tools"]] == LISTED
    assert called["result"]["structuredContent"] == GREETED
    assert called["result"]["isError"] is False
