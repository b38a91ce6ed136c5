"""Rights of connections: what may a connected program do, who ends it, and what do facts say of its calls?"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from access import services as access
from access.agents import services as agents
from access.authentication import bearer
from access.authentication.bearer import resolve_principal
from access.connections import rights
from access.connections import services as connections
from access.connections.pages import list_rows
from access.connections.rights import find_ended_connections
from access.consents.services import approve_consent
from access.members import services as members
from access.models import Connection, Consent
from access.problems import SelfApproval
from access.roles import Role
from evidence.models import Fact
from invocations.api import answer_later
from invocations.decide.callable_tools import offer_tools
from invocations.models import Invocation
from kernel.database import rows
from kernel.database.connections import database_time
from kernel.problems import Forbidden
from tests.conftest import make_person
from tests.support.chains import ECHO
from tests.support.connections import Program, allow
from tests.support.tokens import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
REST = {"resource": settings.TOOLHUB_PUBLIC_URL}


def call(caller: Caller, token: str, tool: str, **envelope: Any) -> Any:
    """As the agent calls, with the program's token in the place of its key."""
    return replace(caller, key=token).invoke(tool, {"text": "x"}, **envelope)


def connect(person: Person, caller: Caller, **form: Any) -> str:
    return str(Program.registered().connect(person, caller.agent, asks=REST, **form)["access_token"])


@pytest.mark.req("CONN-1")
@pytest.mark.usefixtures("bell")
def test_each_call_names_the_connection_the_program_and_who_has_let_it(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    token = connect(operator, caller)

    call(caller, token, ECHO)

    began = Fact.objects.get(kind="invocation.began").content
    opened = Connection.objects.get()
    assert began["actor"]["connection"] == opened.wire_id
    assert began["data"]["connection"] == {
        "id": opened.wire_id,
        "client": opened.client_id,
        "member": operator.by.id,
    }
    assert Invocation.objects.get().connection_id == opened.pk


@pytest.mark.req("CONN-1")
@pytest.mark.usefixtures("bell")
def test_only_the_chosen_tools_are_listed_and_called(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    one, other = enable().name, enable("raises").name
    grant()
    token = connect(operator, caller, reach="these", tools=[one])

    offered = {each.id for each in offer_tools(by=resolve_principal(token, address="192.0.2.7")).manifests}
    refused = call(caller, token, other)

    assert offered == {one}
    assert refused.status_code == 403
    assert "did not include" in refused.content.decode()
    assert call(caller, token, one).status_code == 200


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("by", ["member", "manager", "disabled", "left", "role", "client"])
def test_the_next_request_is_refused_however_it_ended(
    by: str, tenant: Any, operator: Person, second_operator: Person, caller: Caller
) -> None:
    owner = make_person(tenant, "owen", Role.OWNER)
    program = Program.registered()
    tokens = program.connect(operator, caller.agent, asks=REST)
    assert ask(tokens["access_token"]).status_code == 200
    opened = Connection.objects.get()
    assert find_ended_connections([opened.pk]) == []

    if by == "member":
        connections.end_connection(connection_id=opened.pk, by=operator.by)
    elif by == "manager":
        connections.end_connection(connection_id=opened.pk, by=second_operator.by)
    elif by == "disabled":
        agents.disable_agent(agent_id=caller.agent.pk, reason="test", by=second_operator.by)
    elif by == "left":
        members.end_membership(user_id=operator.user.pk, role=Role.OPERATOR, by=owner.by)
    elif by == "role":
        members.set_roles(tenant=tenant, user=operator.user, roles={"developer"}, by=owner.by)
    else:
        gone = Client().post("/oauth/revoke", {"client_id": program.client_id, "token": tokens["refresh_token"]})
        assert gone.status_code == 200

    assert find_ended_connections([opened.pk]) == [opened.pk]  # which is what ends streams
    assert ask(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.req("CONN-1")
def test_who_has_nothing_to_do_with_it_does_not_end_it(
    operator: Person, developer: Person, stranger: Person, caller: Caller
) -> None:
    connect(operator, caller)
    opened = Connection.objects.get()

    with pytest.raises(Forbidden):
        connections.end_connection(connection_id=opened.pk, by=developer.by)
    with pytest.raises(Connection.DoesNotExist):
        connections.end_connection(connection_id=opened.pk, by=stranger.by)


@pytest.mark.req("CONN-1")
def test_a_person_with_the_permission_on_one_agent_connects_to_that_one(
    tenant: Any, developer: Person, operator: Person, caller: Caller
) -> None:
    owner = make_person(tenant, "owen", Role.OWNER)
    other = access.create_agent(name="other", by=operator.by)
    members.give_permission(user_id=developer.user.pk, permission="agents.connect", on=caller.agent, by=owner.by)
    program, browser = Program.registered(), developer.client()

    page = program.open_page(browser).content.decode()
    refused = allow(browser, program, other)

    assert caller.agent.wire_id in page
    assert other.wire_id not in page
    assert refused.status_code == 422
    assert "access_token" in program.connect(developer, caller.agent)


@pytest.mark.req("CONN-1", "TOOLS-19")
@pytest.mark.usefixtures("bell")
def test_who_opened_the_connection_does_not_decide_on_what_its_calls_wait_for(
    operator: Person,
    second_operator: Person,
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
) -> None:
    asking = enable("write", side_effect="Write", idempotency="keyed").name
    grant()
    token = connect(operator, caller)
    held = call(caller, token, asking, on_consent="hold", purpose="to write", idempotency_key="k")
    consent = Consent.objects.get()

    assert held.status_code == 202, held.content
    with pytest.raises(SelfApproval):
        approve_consent(consent_id=consent.pk, reason="go", by=operator.by)
    approve_consent(consent_id=consent.pk, reason="go", by=second_operator.by)


@pytest.mark.req("CONN-1")
def test_the_pages_show_what_is_connected_and_end_it(operator: Person, caller: Caller) -> None:
    token, browser = connect(operator, caller), operator.client()
    ask(token)
    opened = Connection.objects.get()

    for path in ("/connections", "/connections/mine", f"/agents/{caller.agent.wire_id}", f"/people/{operator.by.id}"):
        page = browser.get(path)
        assert page.status_code == 200, path
        text = page.content.decode()
        assert "unverified, at <bdi>client.example</bdi>" in text, path
        assert text.index("<bdi>client.example</bdi>") < text.index("Test client"), path
    answer = browser.post(f"/connections/{opened.wire_id}/end")

    assert answer.status_code == 302
    assert ask(token).status_code == 401
    assert Fact.objects.get(kind="connection.ended").content["data"]["why"] == "revoked"
    assert opened.last_used_at is not None


@pytest.mark.req("CONN-1")
def test_a_list_says_where_a_connection_counts_for_nothing_now(
    tenant: Any, operator: Person, second_operator: Person, caller: Caller
) -> None:
    connect(operator, caller)
    opened = Connection.objects.get()

    before = list_rows(second_operator.by).rows[0]
    agents.disable_agent(agent_id=caller.agent.pk, reason="test", by=second_operator.by)
    after = list_rows(second_operator.by, pk=opened.pk).rows[0]

    assert (before["state"], before["may_end"]) == ("live", True)
    assert after["state"] in ("suspended", "ended")  # not live


@pytest.mark.req("CONN-1")
def test_a_list_does_not_call_live_what_a_lost_role_has_stopped(
    tenant: Any, operator: Person, second_operator: Person, caller: Caller
) -> None:
    owner = make_person(tenant, "owen", Role.OWNER)
    connect(operator, caller)

    members.set_roles(tenant=tenant, user=operator.user, roles={"developer"}, by=owner.by)

    assert list_rows(second_operator.by).rows[0]["state"] != "live"


@pytest.mark.req("CONN-1")
def test_who_belongs_to_no_tenant_is_told_so_and_not_asked_to_sign_in_again() -> None:
    lonely = get_user_model().objects.create_user("lonely", password="x")
    browser = Client()
    browser.force_login(lonely)

    answer = browser.get("/connections/mine")

    assert answer.status_code == 403
    assert "You belong to no tenant of this hub." in answer.content.decode()


@pytest.mark.req("CONN-1")
def test_a_request_of_a_program_asks_the_database_once_and_a_decision_once_more(
    operator: Person, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = connect(operator, caller)
    ask(token)  # notes the use
    by = resolve_principal(token, address="192.0.2.7")
    assert by.connection is not None
    database_time()
    asked: list[int] = []

    def count(*queries: Any) -> Any:
        asked.append(len(queries))
        return rows.fetch_together(*queries)

    for module in (bearer, rights):
        monkeypatch.setattr(module, "fetch_together", count)

    with CaptureQueriesContext(connection) as others:
        resolve_principal(token, address="192.0.2.7")
        found = rights.find_connection_rights(
            by.connection.id, tenant_id=by.tenant_id, agent_id=caller.agent.pk, now=database_time()
        )

    assert found.in_force
    assert asked == [2, 2]  # one way there and back each
    assert len(others) == 0  # prepared ones are not among them


@pytest.mark.req("CONN-1")
def test_what_a_program_waits_for_is_not_given_to_it_once_it_is_disconnected(
    operator: Person, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = resolve_principal(connect(operator, caller), address="192.0.2.7")
    monkeypatch.setattr("invocations.api.services.find_answer", lambda *_, **__: object())
    begun: Any = SimpleNamespace(waiter=object(), at_most_s=1.0, close=lambda: None)
    request: Any = RequestFactory().post("/api/v1/invocations", HTTP_AUTHORIZATION="Bearer x")
    waiting = answer_later(request, begun, by=by, write=lambda *_: HttpResponse("the answer"))
    waiting.request = request

    before = waiting._looked(False)
    connections.end_connection(connection_id=Connection.objects.get().pk, by=operator.by)
    after = waiting._looked(False)

    assert before is not None
    assert before.status_code == 200
    assert after is not None
    assert after.status_code == 401
    assert "resource_metadata=" in after.headers["WWW-Authenticate"]
