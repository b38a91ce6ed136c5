"""From nothing to a governed call of a tool that others have made: do people get there in the console, and in how many clicks?"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from bench.service_documents import DOCUMENTS, fetch_documents
from tests.e2e.browser import PATIENCE_MS, SEEN_SELDOM, Variant, Visitor
from tests.e2e.conftest import UNPAIRED, copy_of
from tests.e2e.processes import python, run
from tests.e2e.test_console_walk import give_grant
from tests.egress.services import answer_with, serving
from tests.egress.world import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Embedded
    from tests.e2e.wire import Answer
    from tests.egress.services import Service

GITHUB, STANDS_AT = "api.github.com", "127.0.0.77"
TOKEN = "ghp-of-the-demo-4711"
GOES_ON_S = 2 * PATIENCE_MS // 1000  # between two words of thirty packages: a hub has calls go before what is built
TIME = "mcp.time.get_current_time"
OPERATIONS = {
    "light": "issues/list-for-repo",
    "chinese-dark": "issues/get",
    "narrow": "pulls/list",
    "without-scripts": "repos/get",
}
ARGUMENTS = {"issues/get": {"issue_number": 1}}
ASKED = {
    "issues/list-for-repo": "/repos/octo/cat/issues",
    "issues/get": "/repos/octo/cat/issues/1",
    "pulls/list": "/repos/octo/cat/pulls",
    "repos/get": "/repos/octo/cat",
}
in_each_way = pytest.mark.parametrize(
    "variant",
    [
        Variant("light"),
        Variant("chinese-dark", language="zh-hans", dark=True),
        pytest.param(Variant("narrow", width=390, height=844), marks=SEEN_SELDOM),
        pytest.param(Variant("without-scripts", scripts=False), marks=SEEN_SELDOM),
    ],
    ids=lambda variant: variant.name,
)


@dataclass
class Clicking:
    """A visitor whose clicks are counted."""

    visitor: Visitor
    clicks: int = 0

    def click(self, place: Locator) -> None:
        self.clicks += 1
        place.click()

    def go(self, section: str) -> None:
        self.clicks += 1
        self.visitor.go(section)

    def take_way(self, way: str) -> None:
        self.clicks += 1
        take_way(self.visitor, way)

    def press(self, text: str) -> None:
        self.click(self.visitor.button(text))


def take_way(visitor: Visitor, way: str) -> None:
    """A link of the first page, which says beside its name what it leads to."""
    name = visitor.variant.say(way)
    visitor.page.get_by_role("main").get_by_role("link").filter(has_text=name).first.click()
    expect(visitor.page.get_by_role("heading", level=1, name=name)).to_be_visible(timeout=PATIENCE_MS)
    visitor.ready()


def wait_until_listed(dana: Visitor) -> None:
    """The page renews itself."""
    wait_while_it_goes_on(dana, dana.page.get_by_role("heading", name=dana.variant.say("Choose tools")))


def wait_while_it_goes_on(visitor: Visitor, wanted: Locator, *, renew: bool = False) -> None:
    """However long it takes in all, as long as the page says something new now and then, and no failure."""
    main, seen, until = visitor.page.get_by_role("main"), [""], 0.0
    while not wanted.count():
        failure = main.locator(".banner[data-tone=bad]")
        assert not failure.count(), failure.inner_text()
        if (said := main.locator("ol.tl li").all_inner_texts()) != seen:
            seen, until = said, time.monotonic() + GOES_ON_S
        assert time.monotonic() < until, said
        visitor.page.wait_for_timeout(1000)
        if renew:
            visitor.page.reload()
            visitor.ready()


def review_and_enable(olivia: Visitor, tool: str) -> None:
    olivia.go("Review queue")
    olivia.follow(tool)
    tried = olivia.variant.say("They are installed on the workers when this version is first used.")
    wait_while_it_goes_on(olivia, olivia.page.get_by_text(tried), renew=True)
    olivia.check("brought-review")
    enable(olivia, tool)


def enable(olivia: Visitor, tool: str) -> None:
    olivia.button("Approve").click()
    olivia.sees("Approved: enable it now?")
    olivia.label("Reason").fill("Its listing was read.")
    olivia.button("Enable tool").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/tools/{tool}", timeout=PATIENCE_MS)
    olivia.ready()


@pytest.mark.req("BRING-2")
@pytest.mark.long  # installs some 30 packages of an index
def test_a_server_of_a_package_is_brought_from_nothing_to_a_governed_call(
    hub: Embedded, browser: Browser, shots: Path
) -> None:
    assert hub.credentials
    variant = Variant("light")
    with Visitor(browser, hub.url, variant, shots) as dana, Visitor(browser, hub.url, variant, shots) as olivia:
        dana.sign_in("dana", hub.credentials.password("dana"))
        bring = Clicking(dana)
        bring.go("Bring a tool")
        dana.check("bring")
        bring.take_way("MCP server of a package")
        dana.check("bring-package")
        dana.page.get_by_role("textbox", name=dana.variant.say("Package")).fill("mcp-server-time")
        bring.press("Start it in a sandbox")
        dana.ready()
        dana.check("bring-waiting")
        wait_until_listed(dana)
        dana.check("bring-choose-tools")
        bring.click(dana.label("get_current_time"))
        bring.press("Make drafts of the chosen")
        dana.ready()
        dana.check("bring-drafts")
        bring.press("Submit 1 draft for review")
        expect(dana.page.get_by_role("heading", level=1)).to_contain_text(TIME, timeout=PATIENCE_MS)
        assert bring.clicks == 6

        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        review_and_enable(olivia, TIME)
        give_grant(olivia, TIME, hub.agent.name)
        answer = hub.agent.invoke(TIME, {"timezone": "Europe/Berlin"})
        for _ in range(60):  # built once somebody uses it
            if answer.status == 200:
                break
            olivia.page.wait_for_timeout(1000)
            answer = hub.agent.invoke(TIME, {"timezone": "Europe/Berlin"})
        assert answer.status == 200, answer
        assert answer.json()["data"]["timezone"] == "Europe/Berlin"
        hub.agent.check_pair(answer.call_id)


@pytest.fixture(scope="module")
def github() -> Iterator[Path]:
    wanted = [each for each in DOCUMENTS if each.name == "GitHub"]
    with fetch_documents(wanted) as found:
        yield found["GitHub"]


@pytest.fixture(scope="module")
def github_answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    """What answers in GitHub's place, and the roots of who vouches for it."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with serving(authority.server_context(GITHUB), address=STANDS_AT) as found:
        yield found, authority.roots


@pytest.fixture(scope="module")
def reaching_github(
    prepared: Embedded, github_answers: tuple[Service, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Embedded]:
    """A hub whose policy lets tools out, and for which GitHub lies on this machine."""
    service, roots = github_answers
    place = tmp_path_factory.mktemp("reaching") / "hub"
    ways = {"TOOLHUB_SANDBOX_NETWORKS": f"{STANDS_AT}/32", "TOOLHUB_SANDBOX_CA_FILE": str(roots)}
    hub = copy_of(prepared, place, **ways)
    hub.prefix = python("-m", "tests.e2e.served_elsewhere", GITHUB, STANDS_AT, str(service.port))
    run(python("-m", "tests.e2e.publishing", "policy"), hub.env)
    with hub.served() as served:
        yield served
    assert served.count(UNPAIRED) == 0
    assert TOKEN not in (served.data / "serve.log").read_text()


@pytest.fixture
def stand_in(github_answers: tuple[Service, Path]) -> Service:
    service, _ = github_answers
    service.heard.clear()
    return service


@pytest.mark.req("BRING-1")
@pytest.mark.long  # 3 MB from npm
@in_each_way
def test_an_operation_of_github_is_brought_from_nothing_to_a_governed_call(
    reaching_github: Embedded, stand_in: Service, browser: Browser, shots: Path, github: Path, variant: Variant
) -> None:
    hub = reaching_github
    assert hub.credentials
    operation = OPERATIONS[variant.name]
    with Visitor(browser, hub.url, variant, shots) as dana, Visitor(browser, hub.url, variant, shots) as olivia:
        dana.sign_in("dana", hub.credentials.password("dana"))
        dana.go("Bring a tool")
        take_way(dana, "Known servers and services")
        dana.check("known-sources")
        bring = Clicking(dana)
        bring.go("Bring a tool")
        bring.take_way("OpenAPI document")
        dana.check("bring-document")
        dana.button("Read it").click()
        dana.sees("Nothing was changed yet.")
        dana.check("bring-document-missing")
        dana.label("OpenAPI document").set_input_files(github)
        dana.label("Credentials").fill("GITHUB_TOKEN")
        bring.press("Read it")
        expect(dana.page.locator("#offers-h")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        dana.check("bring-choose-operations")
        dana.page.locator("#f-tag").select_option(operation.partition("/")[0])
        bring.press("Apply")
        dana.ready()
        dana.page.locator("#f-q").fill(operation)
        bring.press("Apply")
        dana.ready()
        dana.check("bring-filtered")
        bring.click(dana.page.get_by_role("checkbox", name=operation, exact=True))
        bring.press("Make drafts of the chosen")
        expect(dana.page.locator("#drafts")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        assert dict(parse_qsl(urlsplit(dana.page.url).query))["q"] == operation
        draft = dana.page.locator("#drafts th a").filter(has_text=operation.replace("/", "_").replace("-", "_"))
        tool = draft.inner_text().strip()
        assert tool.endswith(f".{operation.replace('/', '_').replace('-', '_')}")
        draft.click()
        dana.sees("Correct the draft")
        dana.ready()
        dana.check("bring-draft")
        dana.button("Save the draft").click()
        expect(dana.page.locator("#drafts")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        dana.check("bring-drafts-of-operations")
        bring.click(dana.page.locator("#drafts form[action$=submit] button"))
        expect(dana.page.get_by_role("heading", level=1)).to_contain_text(tool, timeout=PATIENCE_MS)
        assert bring.clicks <= 8

        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.go("Review queue")
        olivia.follow(tool)
        olivia.check("brought-operation-review")
        enable(olivia, tool)
        give_grant(olivia, tool, hub.agent.name)
        arguments = {"owner": "octo", "repo": "cat"} | ARGUMENTS.get(operation, {})
        unset = hub.agent.invoke(tool, arguments)
        assert unset.reason == "TOOL.NOT_CONFIGURED", unset
        assert stand_in.heard == []
        set_secret(olivia, tool, f"github.{variant.name}")
        said = [{"number": 1, "title": "It rains"}]
        stand_in.answers = [answer_with(json.dumps(said).encode(), content_type="application/json")]
        answer = hub.agent.invoke(tool, arguments)
        assert answer.status == 200, answer
        assert answer.json()["data"] == {"status": 200, "body": said}
        [heard] = stand_in.requests()
        assert heard.startswith(f"GET {ASKED[operation]} HTTP/1.1\r\nHost: {GITHUB}\r\n".encode()), heard
        assert f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode() in heard
        check_evidence(hub, answer, heard)
        olivia.page.goto(f"{hub.url}/invocations/{answer.call_id}")
        olivia.ready()
        expect(olivia.page.get_by_role("main")).to_contain_text(GITHUB)
        expect(olivia.page.get_by_role("main")).not_to_contain_text(TOKEN)
        olivia.check("brought-operation-called")


def set_secret(olivia: Visitor, tool: str, name: str) -> None:
    """A secret of the tenant, and which of the tool's it is."""
    olivia.page.goto(f"{olivia.url}/secrets")
    olivia.ready()
    olivia.label("Name").fill(name)
    olivia.label("Value").fill(TOKEN)
    olivia.button("Set secret").click()
    expect(olivia.page.get_by_role("row").filter(has_text=name)).to_be_visible(timeout=PATIENCE_MS)
    olivia.ready()
    olivia.check("secret-set")
    olivia.page.goto(f"{olivia.url}/installations/{tool}")
    olivia.ready()
    olivia.check("brought-installation")
    settings = olivia.page.locator("form[action$='/settings']")
    settings.get_by_label("GITHUB_TOKEN").select_option(name)
    olivia.label("Reason", settings).fill("The assistant reads our issues.")
    olivia.button("Save settings", settings).click()
    olivia.page.wait_for_load_state("load")
    expect(settings.get_by_label("GITHUB_TOKEN")).to_have_value(name, timeout=PATIENCE_MS)
    olivia.ready()


def check_evidence(hub: Embedded, answer: Answer, heard: bytes) -> None:
    ended = hub.agent.check_pair(answer.call_id)["data"]
    said = ended["service"]
    assert (said["method"], said["host"], said["status"]) == ("GET", GITHUB, 200)
    assert (said["left"], said["complete"], said["bytes_out"]) == (True, True, len(heard))
    assert said["credentials"] == ["GITHUB_TOKEN"]
    assert TOKEN not in json.dumps(hub.agent.facts(answer.call_id))
