"""Objects of PyPI: do tools of LangChain and CrewAI, and functions, go from nothing to a governed call, as their authors left them?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from invocations.run import probes, server_probe
from kernel.problems import Conflict
from registry.dependencies import build_steps
from registry.dependencies.builder import Builder
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, Dependencies, ToolVersion
from registry.reviews import services as reviews
from registry.secrets import services as secrets
from registry.tools import lifecycle
from tests.support.brought_objects import LANGCHAIN, bring_python, pack_folder, read_manifests
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, run_calls_here, run_calls_in
from tests.support.dependencies import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.long]  # each installs packages of an index
PACKAGE = "langchain-core==1.8.3"
KEY = "k3y-of-the-tenant"
CREWAI = """
from crewai.tools import BaseTool, EnvVar
from pydantic import BaseModel


class Found(BaseModel):
    title: str
    key_length: int


class Search(BaseTool):
    name: str = "Search the shop"
    description: str = "Search the shop for a word."
    env_vars: list[EnvVar] = [EnvVar(name="SHOP_KEY", description="API key of the shop", required=True)]
    max_usage_count: int | None = 1

    def _run(self, word: str) -> Found:
        import os

        return Found(title=word, key_length=len(os.environ["SHOP_KEY"]))
"""
SETUP = {"balance": Setup(config={"user": "ada"}), "Keyed": Setup(secrets={"SHOP_KEY": "shop"})}


@pytest.fixture(autouse=True)
def sandbox(boxes: DockerSandbox, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Calls run in boxes, in the thread of who waits for them."""
    tmp_path.chmod(0o755)  # tools are nobody
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    run_calls_in(boxes, monkeypatch, server_probe)
    run_calls_here(monkeypatch, settings)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def submit(caller: Caller) -> Callable[[Path], list[ToolVersion]]:
    """``submit(folder)``: what was brought, uploaded and tried by the builder."""

    def make(folder: Path, **changes: Any) -> list[ToolVersion]:
        answer = Client().post(
            "/api/v1/capsules",
            pack_folder(folder, **changes),
            content_type="application/zip",
            headers=caller.headers(),
        )
        assert answer.status_code == 201, answer.json()
        build_all()
        return list(ToolVersion.objects.filter(capsule__digest=answer.json()["data"]["digest"]))

    return make


def build_all() -> None:
    made = Builder(probe=probes.probe_version)
    while made.pass_once():
        pass


def enable(version: ToolVersion, by: Person, values: Setup) -> None:
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=by.by)
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=by.by)
    installations.configure_installation(name=version.tool.name, values=values, reason="x", by=by.by)


def state_of(version: ToolVersion) -> tuple[str, dict[str, Any]]:
    row = Dependencies.objects.get(version=version)
    return row.state, row.failure


@dataclasses.dataclass(frozen=True)
class Brought:
    """An object, what it is called with, and what comes of it."""

    name: str
    arguments: dict[str, Any]
    answer: Any


BROUGHT = (
    Brought("add", {"a": 2, "b": 3}, 5),
    Brought("Count", {"text": "abc", "times": 2}, [6, 1]),
    Brought("wait_for", {"city": "Rome"}, {"Rome": 4}),
    Brought("AsyncOnly", {"word": "abc"}, "cba"),
    Brought("balance", {"currency": "EUR"}, "ada EUR"),
    Brought("Keyed", {"word": "key"}, f"key {len(KEY)}"),
    Brought("draw", {"title": "a line"}, {"content": "Drawn: a line", "artifact": [1, 2, 3]}),
    Brought("named", {"word": "by"}, "by True"),
    Brought("single", {"tool_input": "abc"}, "ABC"),
    Brought("convert", {"celsius": 100}, "212F"),
)


@pytest.mark.req("BRING-4")
def test_tools_of_langchain_and_functions_go_from_nothing_to_a_governed_call(
    project: Path,
    submit: Callable[..., list[ToolVersion]],
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
) -> None:
    (project / "shop.py").write_text(LANGCHAIN)
    objects = [f"shop:{each.name}" for each in (*BROUGHT, Brought("refuse", {}, None))]

    said = bring_python(
        project, "--run-here", "--package", PACKAGE, "--effect", "Read", "--inject", "user=config.user", *objects
    )

    assert said.returncode == 0, said.stderr
    manifests = read_manifests(project / "python_shop")
    lock = build_steps.resolve_requirements(manifests["add"]["dependencies"], talk=SILENT)  # once for all of them
    found = submit(project / "python_shop", dependency_lock=lock)
    versions = {each.view.origin["object"]["name"].partition(":")[2]: each for each in found}
    assert {name: state_of(each) for name, each in versions.items()} == dict.fromkeys(versions, ("locked", {}))
    secrets.set_secret(name="shop", value=KEY, by=operator.by)
    for name, version in versions.items():
        enable(version, operator, SETUP.get(name, Setup()))
    build_all()
    assert_problem(caller.invoke(manifests["add"]["id"], {"a": 1}), 403, "AUTH.NO_GRANT")
    grant(tools="python.*")

    for each in BROUGHT:
        for _ in range(2):  # nothing is kept for the second call
            answer = caller.invoke(manifests[each.name]["id"], each.arguments)
            assert (answer.status_code, answer.json().get("data")) == (200, each.answer), (each.name, answer.json())
        assert kinds_of(row_of(answer)) == PAIR
    assert caller.invoke(manifests["Count"]["id"], {"text": "abc", "times": "many"}).status_code == 422
    assert caller.invoke(manifests["balance"]["id"], {"currency": "EUR", "user": "eve"}).status_code == 422
    refused = caller.invoke(manifests["refuse"]["id"], {"word": "tea"})
    assert (refused.status_code, refused.json()["detail"]) == (502, "There is no tea."), refused.json()


@pytest.mark.req("BRING-4")
def test_an_object_that_installs_packages_is_refused_where_it_is_brought_and_before_its_review(
    project: Path, submit: Callable[..., list[ToolVersion]], operator: Person
) -> None:
    (project / "shop.py").write_text(LANGCHAIN)
    told = bring_python(project, "--run-here", "--package", PACKAGE, "shop:Installs")
    bring_python(project, "--run-here", "--package", PACKAGE, "shop:Count")
    # An author who writes the draft by hand comes as far as the hub's own try.
    source = project / "python_shop" / "count_letters.py"
    source.write_text(source.read_text().replace("shop:Count", "shop:Installs"))

    (version,) = submit(project / "python_shop")
    state, failure = state_of(version)

    assert told.returncode == 2
    assert "uv add a-module-that-nobody-has" in told.stderr
    assert "--package" in told.stderr
    assert (state, failure["code"]) == ("unresolved", "object_not_made")
    assert "It installs packages when it is made" in failure["remedy"]
    with pytest.raises(Conflict):
        reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)


@pytest.mark.req("BRING-4")
def test_an_object_that_says_of_itself_something_else_than_was_pinned_is_refused(
    project: Path, submit: Callable[..., list[ToolVersion]]
) -> None:
    (project / "shop.py").write_text(LANGCHAIN)
    bring_python(project, "--run-here", "--package", PACKAGE, "shop:Count")
    own = project / "python_shop" / "source" / "shop.py"
    own.write_text(LANGCHAIN.replace("Count letters.", "Send letters."))

    (version,) = submit(project / "python_shop")
    state, failure = state_of(version)

    assert (state, failure["code"]) == ("unresolved", "object_differs")
    assert "description" in failure["message"]


@pytest.mark.req("BRING-4")
def test_a_tool_of_crewai_gets_its_secrets_and_is_made_anew_for_each_call(
    project: Path,
    submit: Callable[..., list[ToolVersion]],
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
) -> None:
    (project / "shop.py").write_text(CREWAI)

    said = bring_python(project, "--run-here", "--package", "crewai==1.15.30", "--effect", "Read", "shop:Search")

    assert said.returncode == 0, said.stderr
    assert "max_usage_count (1) never ends it" in said.stdout
    (version,) = submit(project / "python_shop")
    assert state_of(version) == ("locked", {})
    manifest = read_manifests(project / "python_shop")["Search"]
    assert manifest["output_schema"]["properties"].keys() == {"title", "key_length"}
    secrets.set_secret(name="shop", value=KEY, by=operator.by)
    enable(version, operator, SETUP["Keyed"])
    build_all()
    grant(tools="python.*")

    answers = [caller.invoke(manifest["id"], {"word": "tea"}) for _ in range(2)]

    assert [each.json().get("data") for each in answers] == [{"title": "tea", "key_length": len(KEY)}] * 2


@pytest.mark.req("BRING-4")
def test_what_no_model_can_be_told_is_refused_with_what_to_do(project: Path) -> None:
    (project / "shop.py").write_text(LANGCHAIN)
    why = {
        "Untyped": "does not say of what type its word, times is. Annotate the parameters of its _run",
        "balance": "--inject user=config.user",
        "in_a_graph": "needs state of a running agent graph",
        "Shown": "shows to models what they must not give: user",
    }
    bring = ("--run-here", "--package", PACKAGE)

    told = {name: bring_python(project, *bring, f"shop:{name}") for name in why}

    assert {name: (each.returncode, why[name] in each.stderr) for name, each in told.items()} == dict.fromkeys(
        why, (2, True)
    ), [each.stderr for each in told.values()]


@pytest.mark.req("BRING-4")
def test_what_a_model_must_not_give_is_not_given_under_a_name_that_nobody_has_said(project: Path) -> None:
    (project / "shop.py").write_text(LANGCHAIN)

    said = bring_python(project, "--run-here", "--package", PACKAGE, "shop:Open")

    assert said.returncode == 0, said.stderr
    assert read_manifests(project / "python_shop")["Open"]["input_schema"] == {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "additionalProperties": False,
    }
