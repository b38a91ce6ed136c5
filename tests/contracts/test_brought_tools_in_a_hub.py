"""Brought tools in a hub: is a tool of somebody else's server locked, tried, reviewed and called like any other, and is what its
manifest pins held against what the server says?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.consents import services as consents
from invocations.problems import ImageMissing
from invocations.run import server_probe
from invocations.run.package_lists import list_package
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.problems import Conflict
from registry.dependencies import build_steps
from registry.dependencies.builder import Builder
from registry.dependencies.failures import CannotBuild
from registry.imports.sources import read_package_source
from registry.models import Decision, Dependencies, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.support.calls import PAIR, Bell, assert_problem, kinds_of, row_of, run_calls_here, run_calls_in
from tests.support.dependencies import SILENT, facts_of
from tests.support.mcp_servers import (
    ECHO,
    HONEST,
    HONEST_TOOLS,
    PACKAGE,
    draft_of,
    lay_out_server,
    make_server,
    source_of,
)
from tests.support.policies_in_force import permit, put_in_force
from tests.support.wheels import make_wheel
from unitools.brought_tools import NO_REACH
from unitools.capsules import pack_capsule

if TYPE_CHECKING:
    from collections.abc import Callable
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


@pytest.fixture(autouse=True)
def wheelhouse(tmp_path: Path, settings: Any) -> Path:
    tmp_path.chmod(0o755)  # tools are nobody
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "wheels")
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    make_server(tmp_path / "wheels")
    return tmp_path / "wheels"


@pytest.fixture
def bring(caller: Caller) -> Callable[..., ToolVersion]:
    """``bring(name, **changes)``: the draft of this tool, changed, uploaded and tried by the builder."""

    def make(
        name: str = "Echo-Text", *, build: bool = True, start: dict[str, Any] | None = None, **changes: Any
    ) -> ToolVersion:
        drafts, files = draft_of(name, **(start or {}))
        capsule = pack_capsule([{**drafts[0], **changes}], files)
        answer = Client().post(
            "/api/v1/capsules", capsule.data, content_type="application/zip", headers=caller.headers()
        )
        assert answer.status_code == 201, answer.json()
        version = ToolVersion.objects.get(capsule__digest=capsule.digest)
        if build:
            build_all()
        return version

    return make


def build_all() -> None:
    made = Builder(probe=server_probe.probe_server)
    while made.pass_once():
        pass


def probe(version: ToolVersion, folder: Path, source: str) -> dict[str, str]:
    """What the probe says of a version whose dependencies are this server; empty: nothing."""
    lay_out_server(folder, source)
    try:
        server_probe.probe_server(version, folder, lambda: None)
    except CannotBuild as error:
        return error.failure.to_json()
    return {}


def failure_of(version: ToolVersion) -> dict[str, str]:
    row = Dependencies.objects.get(version=version)
    assert row.state == "unresolved", row.state
    return dict(row.failure)


def enable(version: ToolVersion, by: Person) -> None:
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=by.by)
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=by.by)
    build_all()


@pytest.mark.req("BRING-2")
def test_a_brought_tool_is_tried_reviewed_called_and_denied_as_any_other(
    bring: Callable[..., ToolVersion], caller: Caller, operator: Person, grant: Callable[..., Any]
) -> None:
    version = bring()
    assert facts_of(version) == ["locked"]
    enable(version, operator)

    assert_problem(caller.invoke(ECHOED, {"text": "hi"}), 403, "AUTH.NO_GRANT")
    grant(tools="mcp.*")
    answer = caller.invoke(ECHOED, {"text": "hi"})
    wrong = caller.invoke(ECHOED, {"words": "hi"})

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"] == {"text": "hi"}
    assert kinds_of(row_of(answer)) == PAIR
    assert wrong.status_code == 422


@pytest.mark.req("BRING-2", "TOOLS-24")
@pytest.mark.parametrize(
    ("changes", "reason", "retryable"),
    [
        ({"side_effect": "Read"}, "DOMAIN.UPSTREAM_ERROR", "yes"),
        ({"side_effect": "Write"}, "DOMAIN.SERVER_ERROR", "after_action"),
    ],
)
def test_what_the_server_calls_an_error_is_sent_again_only_where_that_does_nothing_twice(
    changes: dict[str, str],
    reason: str,
    retryable: str,
    bring: Callable[..., ToolVersion],
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
) -> None:
    put_in_force(permit())
    enable(bring("fail", safety_class="Low", **changes), operator)
    grant(tools="mcp.*")
    asked = consents.request_consent(tool="mcp.a.fail", versions="^1", purpose="a test", validity_s=3600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="For a test.", by=operator.by)

    answer = caller.invoke("mcp.a.fail", {}, {"Idempotency-Key": "key-1"})

    error = assert_problem(answer, 502, reason)["error"]
    assert (error["retryable"], error["message"]) == (retryable, "There is no such city.")


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_server_of_an_import_that_needs_a_secret_is_listed_with_a_text_in_its_place(tmp_path: Path) -> None:
    code = "import os\nassert os.environ['API_TOKEN'] == 'not-a-secret'\ndef call(*_): pass"
    folder = lay_out_server(tmp_path / "site", source_of(code))
    (folder / "a_server-1.0.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
    said: dict[str, Any] = {"package": PACKAGE, "constraints": [], "script": "", "arguments": [], "environment": []}
    source = read_package_source(**said, version="1.0", secrets=["API_TOKEN"], lock=[], reach=NO_REACH)

    found = list_package(source, folder, lambda: None)

    assert list(found.listing.tools) == ["Echo-Text"]


@pytest.mark.req("BRING-2")
def test_a_manifest_that_says_otherwise_than_the_server_tells_its_reviewer(bring: Callable[..., ToolVersion]) -> None:
    version = bring(build=False, description="Sends mail to all.")

    assert [(each["rule"], each["pointer"]) for each in version.warnings if each["rule"].startswith("origin.")] == [
        ("origin.differs", "/description")
    ]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "tools",
    [
        [ECHO | {"description": "Gives the text back, and sends it on."}, *HONEST_TOOLS[1:]],
        [ECHO | {"inputSchema": {"type": "object"}}, *HONEST_TOOLS[1:]],
        [ECHO | {"name": "Echo-Text-2"}, *HONEST_TOOLS[1:]],
        HONEST_TOOLS[1:],
        [*HONEST_TOOLS, {"name": "more", "inputSchema": {"type": "object"}}],
    ],
    ids=["description", "schema", "name", "gone", "more"],
)
def test_a_server_that_lists_otherwise_than_its_manifest_pins_is_refused(
    bring: Callable[..., ToolVersion], tmp_path: Path, tools: list[dict[str, Any]]
) -> None:
    failure = probe(bring(build=False), tmp_path / "site", source_of("def call(*_): pass", tools))

    assert (failure["code"], "unitools bring mcp" in failure["remedy"]) == ("listing_differs", True)


@pytest.mark.req("BRING-2")
def test_a_list_that_is_another_one_at_each_start_is_refused_with_what_to_do(
    bring: Callable[..., ToolVersion], tmp_path: Path
) -> None:
    """Its author has seen one of its lists, and the hub sees another one."""
    server = source_of(
        """
        import time
        def call(*_): pass
        def list_tools(params):
            return {"tools": [TOOLS[0] | {"description": f"Started at {time.time_ns()}"}, *TOOLS[1:]]}
        """,
        HONEST_TOOLS,
    )

    failure = probe(bring(build=False), tmp_path / "site", server)

    assert failure["code"] == "listing_differs"
    assert "A list that changes with each start cannot be pinned." in failure["remedy"]
    assert "Started at" in failure["output"]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "tools",
    [
        "[{'name': f't{n}'} for n in range(1001)]",
        "[{'name': 'a', 'description': 'a' + chr(0)}]",
        "[{'name': 'a', 'maximum': 10**21}]",
        "[{'name': 'a', 'x': json.loads('[' * 70 + ']' * 70)}]",
        "[{'name': f't{n}', 'description': 'x' * 900_000} for n in range(3)]",
    ],
    ids=["many", "NUL", "number", "deep", "large"],
)
def test_a_list_that_the_hub_cannot_keep_is_unfit(
    bring: Callable[..., ToolVersion], tmp_path: Path, tools: str
) -> None:
    source = source_of(f"def call(*_): pass\ndef list_tools(params):\n    return {{'tools': {tools}}}")

    assert probe(bring(build=False), tmp_path / "site", source)["code"] == "listing_unfit"


@pytest.mark.req("BRING-2")
def test_what_was_refused_cannot_be_approved(
    bring: Callable[..., ToolVersion], operator: Person, wheelhouse: Path
) -> None:
    make_server(wheelhouse, source_of("def call(*_): pass"))

    version = bring()

    assert failure_of(version)["code"] == "listing_differs"
    with pytest.raises(Conflict):
        reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("code", "output", "remedy"),
    [
        ("import git_that_is_not_here", "ModuleNotFoundError", "git_that_is_not_here did not come along"),
        ("raise ImportError('Bad git executable.')", "Bad git executable", "needs the program git"),
        ("class Server: pass\nServer().list_resources", "no attribute 'list_resources'", "mcp<2"),
        ("import os\nos.environ['API_KEY_OF_IT']", "API_KEY_OF_IT", "wants API_KEY_OF_IT in its environment"),
        ("import subprocess\nsubprocess.run(['pandoc'])", "pandoc", "pandoc"),
        ("import sys\nsys.exit('I will not.')", "", "Read what the server says"),
    ],
)
def test_a_server_that_does_not_start_says_why_and_what_to_do(
    bring: Callable[..., ToolVersion], tmp_path: Path, code: str, output: str, remedy: str
) -> None:
    failure = probe(bring(build=False), tmp_path / "site", source_of(f"{code}\ndef call(*_): pass"))

    assert failure["code"] == "server_unstartable"
    assert output in failure.get("output", "")
    assert remedy in failure["remedy"]
    assert len(failure.get("output", "").encode()) <= server_probe.OUTPUT_BYTES


@pytest.mark.req("BRING-2")
def test_no_version_is_locked_untried_also_where_the_manifest_brings_the_lock(
    bring: Callable[..., ToolVersion], wheelhouse: Path
) -> None:
    sha256 = make_server(wheelhouse, HONEST)
    version = bring(build=False, dependency_lock=[f"a-server==1.0 --hash=sha256:{sha256}"])
    assert Dependencies.objects.get(version=version).state == "resolving"

    while Builder().pass_once():
        pass
    assert failure_of(version)["code"] == "not_probed"


class Broken:
    """A sandbox that has one answer to all, and keeps what it was given."""

    def __init__(self, *outcomes: RunOutcome) -> None:
        self.left = list(outcomes)

    def run(self, *_: Any) -> RunOutcome:
        return self.left.pop(0)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("status", "attempts", "code"),
    [
        (RunStatus.START_FAILED, 3, "not_probed"),
        (RunStatus.LOST, 3, "not_probed"),
        (RunStatus.CANCELLED, 3, "not_probed"),
        (RunStatus.TIMED_OUT, 2, "server_unstartable"),
        (RunStatus.LOAD_TIMED_OUT, 2, "server_unstartable"),
    ],
)
def test_trouble_of_the_hub_is_waited_for_before_it_is_told_as_the_servers(
    bring: Callable[..., ToolVersion], monkeypatch: pytest.MonkeyPatch, status: RunStatus, attempts: int, code: str
) -> None:
    broken = Broken(*[RunOutcome(status, error_message="The engine is away.")] * attempts)
    monkeypatch.setattr(server_probe, "current_sandbox", lambda: broken)
    version = bring()

    for number in range(1, attempts):
        row = Dependencies.objects.get(version=version)
        assert (row.state, row.attempt, len(broken.left)) == ("resolving", number, attempts - number)
        assert row.progress[-1].endswith("It is tried again.")
        build_all()
        assert len(broken.left) == attempts - number, "It was not put off."
        Dependencies.objects.update(lease_until=None)
        build_all()

    assert failure_of(version)["code"] == code
    assert (broken.left, facts_of(version)) == ([], ["unresolved"])


@pytest.mark.req("BRING-2")
def test_what_the_hub_could_not_try_once_is_locked_when_it_can(
    bring: Callable[..., ToolVersion], monkeypatch: pytest.MonkeyPatch, boxes: DockerSandbox
) -> None:
    monkeypatch.setattr(server_probe, "current_sandbox", lambda: Broken(RunOutcome(RunStatus.START_FAILED)))
    version = bring()
    monkeypatch.setattr(server_probe, "current_sandbox", lambda: boxes)
    Dependencies.objects.update(lease_until=None)
    build_all()

    assert Dependencies.objects.get(version=version).state == "locked"


@pytest.mark.req("BRING-2")
def test_an_image_that_the_hub_has_no_more_is_told_as_that(
    bring: Callable[..., ToolVersion], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def miss(_: ToolVersion) -> str:
        raise ImageMissing("This hub has no sandbox image 'python' any more.", remedy="Operators: add it.")

    monkeypatch.setattr(server_probe, "find_run_image", miss)

    failure = probe(bring(build=False), tmp_path / "site", HONEST)

    assert (failure["code"], failure["remedy"]) == ("image_missing", "Operators: add it.")


@pytest.mark.req("BRING-2")
def test_a_server_is_tried_without_the_secrets_of_anybody(bring: Callable[..., ToolVersion], tmp_path: Path) -> None:
    needs = "import os\nassert os.environ['KEY'] == 'not-a-secret', os.environ['KEY']\n"
    secrets = [{"name": "TOKEN", "description": "Of the service."}]
    start = {"environment": [{"name": "KEY", "secret": "TOKEN"}]}
    version = bring(build=False, start=start, secrets=secrets)

    assert probe(version, tmp_path / "site", source_of(f"{needs}def call(*_): pass", HONEST_TOOLS)) == {}


@pytest.mark.req("BRING-2")
def test_a_constraint_decides_which_version_comes_along(wheelhouse: Path) -> None:
    for number in ("1.9", "2.0"):
        make_wheel(wheelhouse, "sdk", number)
    make_wheel(wheelhouse, "user", requires=["sdk"])

    lines = build_steps.resolve_requirements(["user==1.0"], talk=SILENT, constraints=["sdk<2"])

    assert [each.split()[0] for each in lines] == ["sdk==1.9", "user==1.0"]
