"""A walk to an account: does a person with a real browser come from the address that a caller was told to a call that goes on?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from access.models import ServerAccount
from invocations.models import State
from invocations.run import execution
from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, chromium, in_each_variant
from tests.egress.accounts.conftest import TOOL
from tests.support.calls import row_of
from tests.support.mcp_clients import web_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.authorization_server import AuthorizationServer


@pytest.fixture
def url(settings: Any) -> Iterator[str]:
    with web_server(threads=2) as found:
        settings.TOOLHUB_PUBLIC_URL = found
        yield found


def walk(visit: Callable[[Visitor], None], variant: Variant, url: str, shots: Path, session: str) -> None:
    """In a thread of its own: Playwright keeps an event loop in it, and the rows are read in the other."""
    failed: list[BaseException] = []

    def go() -> None:
        try:
            for browser in chromium():
                with Visitor(browser, url, variant, shots) as visitor:
                    cookies = {"sessionid": session, "django_language": variant.language}
                    visitor.page.context.add_cookies(
                        [{"name": name, "value": value, "url": url} for name, value in cookies.items()]
                    )
                    visit(visitor)
        except BaseException as error:  # noqa: BLE001  it is raised below
            failed.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@pytest.mark.req("BRING-3")
@pytest.mark.django_db(transaction=True)
@in_each_variant
def test_a_person_connects_their_account_and_the_call_that_waited_goes_on(
    variant: Variant,
    url: str,
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    tmp_path: Path,
) -> None:
    bring()
    held = caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="hold")
    told = held.json()["call"]["held"]["url"]
    assert told.startswith(url)

    def visit(alice_at: Visitor) -> None:
        page = alice_at.page
        page.goto(told)
        alice_at.ready()
        alice_at.sees("Calls that wait for it")
        alice_at.check("account-requested")
        page.get_by_role("checkbox", name=caller.agent.name).check()
        alice_at.button("Connect my account").click()
        alice_at.ready()
        alice_at.check("account-go-on")
        page.get_by_role("main").get_by_role("link").filter(has_text="127.0.0.1").click()
        expect(alice_at.button("Disconnect")).to_be_visible(timeout=PATIENCE_MS)
        alice_at.ready()
        alice_at.check("account-connected")
        page.goto(f"{url}/server-accounts")
        alice_at.ready()
        alice_at.check("my-server-accounts")
        page.goto(f"{url}/server-accounts/servers")
        alice_at.ready()
        alice_at.check("account-servers")

    walk(visit, variant, url, tmp_path, alice.client().cookies["sessionid"].value)
    execution.run_queued_calls()

    row = row_of(held)
    row.refresh_from_db()
    assert row.state == State.SUCCEEDED
    assert caller.get(f"/invocations/{row.wire_id}").json()["data"]["of"] == "alice"
    assert ServerAccount.objects.get().agents == [caller.agent.wire_id]
