"""Races for codes and refresh tokens, good for once: what do eight programs get that show one at the same moment?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from access.agents.services import create_agent
from access.clients.services import enter_client, remove_client
from access.issuers.services import distrust_issuer
from access.models import Connection, ConnectionToken
from access.roles import Role
from tests.conftest import make_person
from tests.support.concurrency import at_once
from tests.support.connections import REDIRECT, Program, allow, read_answer, read_shown, signed_request
from tests.support.identity_assertions import enter_enterprise, know_person, let_vouch, sign_in_with, trust
from tests.support.tokens import ask

if TYPE_CHECKING:
    from typing import Any

    from access.models import TrustedIssuer
    from tests.conftest import Caller, Person
    from tests.support.identity_assertions import Enterprise

pytestmark = pytest.mark.django_db(transaction=True)
REST = {"resource": settings.TOOLHUB_PUBLIC_URL}


@pytest.fixture
def owner(caller: Caller) -> Person:
    return make_person(caller.agent.tenant, "otto", Role.OWNER)


@pytest.fixture
def enterprise(operator: Person, settings: Any) -> Enterprise:
    settings.SOCIALACCOUNT_PROVIDERS = sign_in_with()
    know_person(operator, "s-1")
    return enter_enterprise(by=operator.by)[0]


@pytest.fixture
def issuer(enterprise: Enterprise, caller: Caller, owner: Person) -> TrustedIssuer:
    return let_vouch(trust(enterprise, by=owner.by), caller, by=owner.by)


@pytest.mark.req("CONN-1")
def test_of_eight_that_show_one_code_one_gets_tokens_and_keeps_them(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent, asks=REST))["code"]

    answers = at_once(8, lambda _: program.exchange(code))

    statuses = sorted(getattr(each, "status_code", repr(each)) for each in answers)
    assert statuses == [200] + [400] * 7
    (winner,) = (each.json() for each in answers if not isinstance(each, Exception) and each.status_code == 200)
    assert ask(winner["access_token"]).status_code == 200
    losers = [each.json()["error"] for each in answers if not isinstance(each, Exception) and each.status_code == 400]
    assert losers == ["invalid_grant"] * 7


@pytest.mark.req("CONN-1")
def test_of_eight_that_show_one_refresh_token_one_gets_newer_ones_and_keeps_them(
    operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent, asks=REST)

    answers = at_once(8, lambda _: program.refresh(tokens["refresh_token"]))

    statuses = sorted(getattr(each, "status_code", repr(each)) for each in answers)
    assert statuses == [200] + [400] * 7
    (winner,) = (each.json() for each in answers if not isinstance(each, Exception) and each.status_code == 200)
    assert ask(winner["access_token"]).status_code == 200
    assert ConnectionToken.objects.filter(kind="access").count() == 1
    assert Connection.objects.get().ended_at is None
    assert program.refresh(winner["refresh_token"]).status_code == 200


@pytest.mark.req("CONN-1")
def test_of_eight_that_open_connections_at_once_all_do(operator: Person, caller: Caller) -> None:
    programs = [Program.registered() for _ in range(8)]
    browsers = [operator.client() for _ in range(8)]

    answers = at_once(8, lambda n: allow(browsers[n], programs[n], caller.agent))

    assert [getattr(each, "status_code", repr(each)) for each in answers] == [303] * 8
    assert Connection.objects.count() == 8


@pytest.mark.req("CONN-1")
def test_of_one_form_that_is_sent_eight_times_at_once_there_is_one_connection(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    page = program.open_page(browser)
    form = {"agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1", "decision": "allow"}
    sent = {"request": signed_request(page), "shown": read_shown(page)} | form

    answers = at_once(8, lambda _: browser.post("/oauth/authorize", sent))

    assert [getattr(each, "status_code", repr(each)) for each in answers] == [303] * 8
    assert Connection.objects.count() == 1
    results = [program.exchange(read_answer(each)["code"]).status_code for each in answers]
    assert sorted(results) == [200] + [400] * 7


@pytest.mark.req("CONN-1")
def test_of_one_form_that_is_sent_for_two_agents_at_once_one_is_connected(operator: Person, caller: Caller) -> None:
    other = create_agent(name="another", by=operator.by)
    program, browser = Program.registered(), operator.client()
    form = {"reach": "all", "scopes": ["tools:read"], "days": "1", "decision": "allow"}
    form["request"] = signed_request(program.open_page(browser))
    agents = [each.wire_id for each in (caller.agent, other)]

    answers = at_once(
        8, lambda n: browser.post("/oauth/authorize", form | dict.fromkeys(("agent", "shown"), agents[n % 2]))
    )

    assert {getattr(each, "status_code", repr(each)) for each in answers} == {303, 422}
    assert Connection.objects.count() == 1


@pytest.mark.req("CONN-1")
def test_none_that_is_connected_while_it_is_removed_stays_connected(operator: Person, caller: Caller) -> None:
    entered, _ = enter_client(name="p", redirect_uris=[REDIRECT], confidential=False, by=operator.by)
    program, browsers = Program(entered.client_id), [operator.client() for _ in range(4)]
    pages = [program.open_page(each) for each in browsers]
    form = {"agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1", "decision": "allow"}

    def act(n: int) -> int:
        if n == 2:
            remove_client(client_id=entered.pk, reason="x", by=operator.by)
            return 204
        sent = {"request": signed_request(pages[n]), "shown": read_shown(pages[n])} | form
        return int(browsers[n].post("/oauth/authorize", sent).status_code)

    answers = at_once(4, act)

    assert set(answers) <= {204, 303, 400, 404, 422}
    assert not Connection.objects.filter(ended_at=None).exists()


@pytest.mark.req("CONN-2")
def test_of_eight_that_show_one_assertion_one_gets_a_token(enterprise: Enterprise, issuer: TrustedIssuer) -> None:
    assertion = enterprise.sign()

    answers = at_once(8, lambda _: enterprise.show(assertion))

    statuses = sorted(getattr(each, "status_code", repr(each)) for each in answers)
    assert statuses == [200] + [400] * 7
    losers = [each.json()["error"] for each in answers if not isinstance(each, Exception) and each.status_code == 400]
    assert losers == ["invalid_grant"] * 7
    assert ConnectionToken.objects.filter(kind="access").count() == 1


@pytest.mark.req("CONN-2")
def test_eight_that_show_assertions_of_their_own_at_once_share_one_connection(
    enterprise: Enterprise, issuer: TrustedIssuer
) -> None:
    assertions = [enterprise.sign() for _ in range(8)]

    answers = at_once(8, lambda n: enterprise.show(assertions[n]))

    assert [getattr(each, "status_code", repr(each)) for each in answers] == [200] * 8
    assert Connection.objects.count() == 1
    assert ConnectionToken.objects.filter(kind="access").count() == 8


@pytest.mark.req("CONN-2")
def test_nothing_is_opened_behind_the_end_of_the_trust(
    enterprise: Enterprise, issuer: TrustedIssuer, owner: Person
) -> None:
    assertions = [enterprise.sign() for _ in range(4)]

    def act(n: int) -> int:
        if n == 2:
            distrust_issuer(issuer_id=issuer.pk, reason="x", by=owner.by)
            return 204
        return int(enterprise.show(assertions[n]).status_code)

    assert set(at_once(4, act)) <= {200, 204, 400}
    assert not Connection.objects.filter(ended_at=None).exists()
