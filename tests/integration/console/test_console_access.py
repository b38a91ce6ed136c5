"""Console access: what do people get who are not signed in, whose browser asks for a fragment, or who name what is not there?

Who may do what is in ``test_access_table.py``; what people of another tenant find in ``test_tenant_isolation.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import reverse

from access.roles import ROLE_PERMISSIONS, Role
from evidence.models import Fact
from kernel.ids import new_id
from kernel.principal import Principal
from tests.conftest import make_caller, make_person
from tests.support.populated_tenant import Things, send
from tests.support.request_bodies import bodies, forms
from tests.support.request_preparations import prepare
from tests.support.routes import api_routes, console_routes
from tests.support.tenant_rows import rows_of

if TYPE_CHECKING:
    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db

GOVERNED = [route for route in console_routes() if route.needs]
OBJECTS = [route for route in GOVERNED if route.takes]
SCOPED = [route for route in api_routes() if hasattr(route.api_class, "required_scope")]
PUBLIC = [
    route
    for route in console_routes()
    if route.name not in {"healthz", "readyz"} and not route.needs and not route.takes
    and not route.path.startswith("account/")  # test_sign_in
]  # fmt: skip


@pytest.fixture
def things(populated: Things, bell: Bell) -> Things:
    return populated


def ask(client: Client, url: str, **headers: str) -> Any:
    """GET; or an empty POST where an address takes nothing else."""
    answer = client.get(url, headers=headers)
    return client.post(url, headers=headers) if answer.status_code == 405 else answer


@pytest.mark.req("CARD-3", "CARD-6")
def test_fragments_are_governed_like_pages(things: Things) -> None:
    aaron = make_person(things.tenant, "aaron", Role.AUDITOR)
    prepare("search_delete", things, aaron.by)
    client = aaron.client()

    found = {route.name: ask(client, things.url(route), **{"HX-Request": "true"}).status_code for route in GOVERNED}

    forbidden = {route.name for route in GOVERNED if route.needs not in ROLE_PERMISSIONS[Role.AUDITOR]}
    assert {name for name, status in found.items() if status == 403} == forbidden


def test_an_auditor_sees_no_button_to_decide_with(things: Things) -> None:
    client = make_person(things.tenant, "aaron", Role.AUDITOR).client()
    # A reason to reveal values; exports that it asked for; files.
    its_own = ("invocation", "invocation_record", "export", "export_content", "checkpoint_note", "fact_proof")
    for route in OBJECTS:
        answer = client.get(things.url(route))
        if answer.status_code == 200 and route.name not in its_own and route.needs != "invocations.replay":
            forms = answer.content.decode().split("<main", 1)[1].split("</main", 1)[0].count('method="post"')
            assert forms == 0, route.name


def test_an_empty_form_changes_nothing(things: Things) -> None:
    client, sent = make_person(things.tenant, "owen", Role.OWNER).client(), forms(things)
    takes_something = [route for route in GOVERNED if "POST" in route.methods and sent[route.name]]
    before, facts = rows_of(), Fact.objects.count()

    found = {route.name: client.post(things.url(route)).status_code for route in takes_something}

    after = rows_of()
    evidence = {"evidence_fact", "evidence_pending", "evidence_snapshot", "evidence_subjectkey"}
    assert {name for name in after if after[name] != before[name]} <= evidence
    looks = Fact.objects.filter(kind="snapshot.read").count()  # who decides on a consent is shown what for, on record
    assert Fact.objects.count() - facts == looks
    assert found.pop("retention") == 302  # nothing said keeps everything, as it is here
    assert found.pop("connection_rule") == 302  # and leaves connections to the hub
    assert found.pop("playground_set_up") == 302  # somebody has set it up already
    assert (found.pop("call_columns"), found.pop("shortcuts")) == (
        302,
        302,
    )  # of this browser: no columns more, and no letters
    assert {
        name: each for name, each in found.items() if each not in (200, 403, 404, 422)
    } == {}  # 200: a form that was not sent at all


def test_what_names_nothing_is_not_found(things: Things) -> None:
    client, sent, before = make_person(things.tenant, "pat", *Role).client(), forms(things), rows_of()
    names = {
        "tools.name": "sample.tools.nothing",
        "submissions.name": "sample.tools.nothing",
        "installations.name": "sample.tools.nothing",
        "tool_id": "a.b.c",
    }
    nothing = {key: new_id() if isinstance(value, type(new_id())) else value for key, value in things.named.items()}
    nothing |= names | {"secrets.name": "nothing", "install.name": "a.b.c", "user_id": 999_999_999}
    nothing |= {"files.path": "of/nothing.csv", "api_version_dependencies_retry.tool_id": "a.b.c"}
    nothing |= {"model-providers.name": "nothing", "model-providers.alias": "nothing", "model_id": "model.none.nothing"}
    nothing |= {name: "model.none.nothing" for name in things.named if name.endswith(".model_id")}
    nothing |= {"slug": "nothing", "size": 999_999_999, "tile": "0/x999/999", "model-prices.number": 999_999_999}
    there_is_none = Things(things.tenant, things.word, things.people, things.caller, things.robot, nothing)
    found = {}

    for route in OBJECTS:
        for method in route.methods:
            answer = send(client, method, there_is_none.url(route), sent[route.name] if method == "POST" else {})
            found[f"{method} {route.name}"] = answer.status_code
    asked = bodies(things)
    for route in SCOPED:
        for method in route.methods if route.takes else ():
            if f"{method} {route.name}" not in ("PUT api_secret", "PUT api_file"):  # which make one
                people_only = route.scope(method) == "-"
                answer = send(
                    client if people_only else Client(),
                    method,
                    there_is_none.url(route),
                    asked.get(f"{method} {route.name}"),
                    {} if people_only else things.robot.headers(),
                )
                found[f"{method} {route.name}"] = answer.status_code

    assert {action: status for action, status in found.items() if status != 404} == {}
    changed = {name for name, rows in rows_of().items() if rows != before[name]}
    call = {"invocations_invocation", "evidence_fact", "evidence_pending", "evidence_snapshot"}
    assert changed <= call | {"invocations_tally"}  # and how often a tool was named that is none


def test_people_who_are_not_signed_in_are_sent_to_the_sign_in(things: Things) -> None:
    client = Client()

    for route in GOVERNED:
        answer = ask(client, things.url(route))
        assert answer.status_code == 302, route.name
        assert answer.headers["Location"].startswith("/sign-in?next="), route.name


def test_a_fragment_for_somebody_who_is_not_signed_in_sends_the_whole_page_to_the_sign_in() -> None:
    answer = Client().get("/invocations", headers={"HX-Request": "true"})

    assert answer.headers["HX-Redirect"].startswith("/sign-in?next=")


def test_somebody_of_no_tenant_sees_nothing(things: Things, django_user_model: Any) -> None:
    client = Client()
    client.force_login(django_user_model.objects.create_superuser(username="root", password="x" * 16))

    for route in GOVERNED:
        assert ask(client, things.url(route)).status_code == 302, route.name


def test_public_pages_need_nobody(things: Things) -> None:
    found = {route.name: ask(Client(), reverse(route.name)).status_code for route in PUBLIC}

    assert found == {
        "sign_in": 200,
        "sign_out": 302,
        "switch_tenant": 302,
        "theme": 302,
        "set_language": 302,
        "api_reference": 200,
        "problems": 200,
        "metrics": 404,  # of whom has the token, where one is set
        "global_checkpoint": 200,
        "global_keys": 200,
        "sdk": 200,
        "oauth_protected_resource": 200,
        "oauth_protected_mcp": 200,
        "oauth_authorization_server": 200,
        "oauth_openid_configuration": 200,
        "oauth_token": 400,
        "oauth_revoke": 400,
        "oauth_register": 400,
        "oauth_guessed_authorize": 404,
        "oauth_guessed_token": 404,
        "oauth_guessed_register": 404,
        "authorize": 302,
        "my_connections": 302,
        "display": 302,
        "display_zone": 302,
        "oauth_hub_client": 200,
        "my_server_accounts": 302,
        "server_account_begin": 302,
        "server_account_callback": 302,
    }


def test_an_agents_key_does_not_open_the_console(caller: Caller) -> None:
    answer = Client().get("/invocations", headers=caller.headers())

    assert answer.status_code == 302


def test_an_agent_does_not_read_the_calls_and_consents_of_its_neighbour(things: Things) -> None:
    neighbour = make_caller(Principal.system("test", tenant_id=things.tenant.pk), "neighbour")
    for name in ("api_invocation", "api_evidence", "api_consent", "api_grant_request"):
        route = next(route for route in SCOPED if route.name == name)
        assert Client().get(things.url(route), headers=neighbour.headers()).status_code == 404, name
    assert neighbour.get("/consents").json()["data"]["consents"] == []
    assert neighbour.get("/grants/requests").json()["data"]["requests"] == []
