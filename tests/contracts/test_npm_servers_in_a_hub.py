"""Npm servers in a hub: is a tool of a server of npm locked, tried, reviewed and called like any other, and what cannot run named?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from invocations.run import server_probe
from registry.dependencies.builder import Builder
from registry.models import Decision, Dependencies, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.support.calls import PAIR, Bell, assert_problem, kinds_of, row_of, run_calls_here, run_calls_in
from tests.support.dependencies import facts_of
from tests.support.npm_packages import (
    HONEST,
    TOOLS,
    draft_of,
    line_of,
    pack_package,
    pack_server,
    path_of,
    serve_registry,
    source_of,
)
from unitools.capsules import pack_capsule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHOED = "mcp.a.echo_text"


@pytest.fixture(autouse=True)
def sandbox(boxes: DockerSandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Bell:
    """Calls run in boxes, in the thread of who waits for them."""
    run_calls_in(boxes, monkeypatch, server_probe)
    return run_calls_here(monkeypatch, settings)


@pytest.fixture
def files() -> dict[str, bytes]:
    return {}


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, settings: Any, files: dict[str, bytes]) -> Iterator[None]:
    tmp_path.chmod(0o755)  # tools are nobody
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with serve_registry(files) as (address, _):
        settings.TOOLHUB_NPM_REGISTRY = address
        yield


@pytest.fixture
def bring(caller: Caller, files: dict[str, bytes]) -> Callable[..., ToolVersion]:
    """``bring(packed)``: the draft of a tool of this server, uploaded and tried by the builder."""

    def make(packed: bytes | None = None, **changes: Any) -> ToolVersion:
        files[path_of()] = packed or pack_server()
        drafts, shipped = draft_of("Echo-Text", lock=[line_of(files[path_of()])])
        capsule = pack_capsule([{**drafts[0], **changes}], shipped)
        answer = Client().post(
            "/api/v1/capsules", capsule.data, content_type="application/zip", headers=caller.headers()
        )
        assert answer.status_code == 201, answer.json()
        build_all()
        return ToolVersion.objects.get(capsule__digest=capsule.digest)

    return make


def build_all() -> None:
    made = Builder(probe=server_probe.probe_server)
    while made.pass_once():
        pass


def failure_of(version: ToolVersion) -> dict[str, str]:
    row = Dependencies.objects.get(version=version)
    assert row.state == "unresolved", row.state
    return dict(row.failure)


@pytest.mark.req("BRING-2")
def test_a_tool_of_npm_is_tried_reviewed_called_and_denied_as_any_other(
    bring: Callable[..., ToolVersion], caller: Caller, operator: Person, grant: Callable[..., Any]
) -> None:
    version = bring()
    assert facts_of(version) == ["locked"]
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
    lifecycle.enable_tool(name=ECHOED, version_id=version.pk, reason="x", by=operator.by)
    build_all()

    assert_problem(caller.invoke(ECHOED, {"text": "hi"}), 403, "AUTH.NO_GRANT")
    grant(tools="mcp.*")
    answers = [caller.invoke(ECHOED, {"text": text}) for text in ("hi", "again")]
    wrong = caller.invoke(ECHOED, {"words": "hi"})

    assert [each.json()["data"] for each in answers] == [{"text": "hi"}, {"text": "again"}]
    assert [kinds_of(row_of(each)) for each in answers] == [PAIR, PAIR]
    assert wrong.status_code == 422


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("packed", "code", "says"),
    [
        (pack_server(source_of(tools=TOOLS[1:])), "listing_differs", "unitools bring mcp"),
        (
            pack_server(f"import cp from 'node:child_process';\ncp.execFileSync('git', ['--version']);\n{source_of()}"),
            "server_unstartable",
            "needs the program git",
        ),
        (
            pack_server(f"import 'not-there';\n{source_of()}"),
            "server_unstartable",
            "The module not-there did not come along",
        ),
        (
            pack_server(f"if (!process.env.API_KEY) throw new Error('API_KEY is required');\n{source_of()}"),
            "server_unstartable",
            "wants API_KEY in its environment",
        ),
        (pack_server("process.exit(3);"), "server_unstartable", "Read what the server says below"),
        (pack_server(scripts={"postinstall": "node-gyp rebuild"}), "install_script", "Nothing of a package is run"),
        (pack_package(files={"server.mjs": HONEST}), "server_unstartable", "Read what the server says below"),
    ],
    ids=["listing", "git", "module", "environment", "exit", "script", "no program"],
)
def test_a_server_that_cannot_be_taken_says_what_to_do(
    bring: Callable[..., ToolVersion], packed: bytes, code: str, says: str
) -> None:
    failure = failure_of(bring(packed))

    assert (failure["code"], says in failure["remedy"]) == (code, True), failure


@pytest.mark.req("BRING-2")
def test_a_secret_of_the_manifest_is_a_text_that_is_none_while_it_is_tried(bring: Callable[..., ToolVersion]) -> None:
    source = f"if (process.env.KEY !== 'not-a-secret') process.exit(1);\n{source_of()}"
    server = {"script": "a-server", "listing": "mcp_a", "environment": [{"name": "KEY", "secret": "API_KEY"}]}

    version = bring(
        pack_server(source),
        implementation={"kind": "mcp_stdio", "server": server},
        secrets=[{"name": "API_KEY", "description": "of a"}],
    )

    assert facts_of(version) == ["locked"]
