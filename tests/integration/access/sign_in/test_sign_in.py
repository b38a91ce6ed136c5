"""Signing in: how do people prove who they are, and what happens to those who cannot?"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.usersessions.models import UserSession
from django.core import mail
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client, RequestFactory

from access.members import services as members
from access.models import Membership
from access.roles import Role
from access.sign_in.adapters import recently_authenticated
from kernel.cache import ForgivingRedisCache
from tests.conftest import make_person
from tests.support.cast_rows import PASSWORD
from tests.support.routes import console_routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_attempts_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def sign_in(name: str, password: str = PASSWORD, client: Client | None = None, **form: str) -> Any:
    return (client or Client()).post("/sign-in", {"username": name, "password": password} | form)


def code_for(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time())))))


def set_up_app(client: Client) -> tuple[str, list[str]]:
    """Sets up an authenticator app; returns its key and the recovery codes."""
    page = client.get("/account/app/new").content.decode()
    found = re.search(r"\b[A-Z2-7]{32}\b", page)
    assert found, page
    assert client.post("/account/app/new", {"code": code_for(found[0])}).status_code == 302
    codes = re.findall(r"<li>(\d{8})</li>", client.get("/account/recovery-codes").content.decode())
    return found[0], codes


# Password.


def test_a_person_signs_in_by_name_or_address_and_the_session_is_a_new_one(operator: Person) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()
    client = Client()
    client.get("/sign-in")
    client.session["before"] = "x"
    before = client.session.session_key

    answer = sign_in("olivia", client=client, next="/grants")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/grants")
    assert client.session.session_key != before
    assert sign_in("Olivia@Example.org").status_code == 302


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "javascript:alert(1)", "/\\evil.example"])
def test_signing_in_leads_nowhere_else(to: str, operator: Person) -> None:
    assert sign_in("olivia", next=to).headers["Location"] == "/start"


def test_guessing_is_slowed_down_by_name_and_by_address(operator: Person) -> None:
    answers = [sign_in("olivia", "wrong password") for _ in range(6)]

    assert {answer.status_code for answer in answers} == {422}
    assert "Too many failed" in answers[-1].content.decode()
    assert sign_in("olivia").status_code == 422  # the right password does not help now
    for number in range(20):
        sign_in(f"nobody-{number}", "wrong password")
    assert "Too many failed" in sign_in("somebody else", "wrong").content.decode()


def test_who_guesses_elsewhere_keeps_nobody_out(operator: Person) -> None:
    for _ in range(6):
        answer = sign_in("olivia", "wrong password", Client(REMOTE_ADDR="203.0.113.9"))
    assert "Too many failed" in answer.content.decode()

    assert sign_in("olivia", client=Client(REMOTE_ADDR="198.51.100.7")).status_code == 302
    assert sign_in("olivia", client=Client(REMOTE_ADDR="203.0.113.9")).status_code == 422


def test_a_name_and_an_address_of_one_person_are_counted_together(operator: Person) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()

    answers = [sign_in(("olivia", "olivia@example.org")[number % 2], "wrong password") for number in range(6)]

    assert "Too many failed" in answers[-1].content.decode()


def test_guessing_one_persons_password_from_many_addresses_ends(operator: Person) -> None:
    for number in range(101):
        answer = sign_in("olivia", "wrong password", Client(REMOTE_ADDR=f"203.0.113.{number}"))

    assert "Too many failed" in answer.content.decode()


def test_very_many_attempts_get_a_page_that_says_so(operator: Person, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "1/m/ip"}
    sign_in("olivia")

    answer = sign_in("olivia")

    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "60"


def test_a_wrong_name_and_a_wrong_password_read_the_same(operator: Person) -> None:
    pages = [sign_in(name, "wrong password").content.decode() for name in ("olivia", "nobody")]

    wrong = [re.findall(r'role="alert".*?</div>\s*</div>', page, re.DOTALL) for page in pages]
    assert wrong[0] == wrong[1] != []


def test_somebody_whose_account_is_closed_does_not_come_in(operator: Person) -> None:
    client = operator.client()
    operator.user.is_active = False
    operator.user.save()

    assert sign_in("olivia").status_code == 422
    assert client.get("/grants").status_code == 302


def test_nobody_signs_up() -> None:
    assert Client().get("/account/sign-up").status_code == 404
    assert not [route for route in console_routes() if "signup" in route.name]


# Second factors.


def test_a_second_factor_is_asked_for_and_its_secret_is_encrypted(operator: Person) -> None:
    secret, codes = set_up_app(operator.client())
    assert len(codes) == 10
    row = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    assert secret not in json.dumps(row.data)

    client = Client()
    answer = sign_in("olivia", client=client, next="/grants")
    assert answer.headers["Location"] == "/account/second-step"
    assert client.get("/grants").status_code == 302  # not yet
    assert client.get("/account/second-step").status_code == 200
    assert client.post("/account/second-step", {"code": "000000"}).status_code == 200
    cache.clear()  # a code counts once; as if half a minute had passed
    assert client.post("/account/second-step", {"code": code_for(secret)}).headers["Location"] == "/grants"
    assert client.get("/grants").status_code == 200


def test_a_recovery_code_works_once(operator: Person) -> None:
    _, codes = set_up_app(operator.client())

    for expected in (302, 200):
        client = Client()
        sign_in("olivia", client=client)
        assert client.post("/account/second-step", {"code": codes[0]}).status_code == expected


def test_codes_cannot_be_guessed_for_ever(operator: Person) -> None:
    set_up_app(operator.client())
    client = Client()
    sign_in("olivia", client=client)

    for number in range(12):
        answer = client.post("/account/second-step", {"code": f"{number:06}"})

    assert "Too many failed" in answer.content.decode()


def test_the_first_step_alone_opens_no_page_about_signing_in(operator: Person) -> None:
    set_up_app(operator.client())
    client = Client()
    sign_in("olivia", client=client)

    for path in ("/account/security", "/account/app/remove", "/account/sessions", "/account/password"):
        assert client.get(path).headers["Location"].startswith("/sign-in"), path


@pytest.mark.parametrize("roles", [["operator"], ["owner", "operator"]])
def test_a_role_may_ask_for_a_second_factor(roles: list[str], operator: Person, auditor: Person, settings: Any) -> None:
    settings.TOOLHUB_REQUIRE_MFA = roles
    client = operator.client()

    answer = client.get("/grants")
    assert answer.headers["Location"] == "/account/security"
    assert client.get("/grants", headers={"HX-Request": "true"}).headers["HX-Redirect"] == "/account/security"
    assert "Your permissions require a second factor" in client.get("/account/security").content.decode()
    assert auditor.client().get("/grants").status_code == 200
    set_up_app(client)
    assert client.get("/grants").status_code == 200


def test_people_of_a_role_that_nothing_is_asked_of_are_left_alone(tenant: Tenant, settings: Any) -> None:
    settings.TOOLHUB_REQUIRE_MFA = ["owner"]
    person = make_person(tenant, "rita", Role.REVIEWER)
    assert person.client().get("/grants").status_code == 200
    Membership.objects.filter(user=person.user).update(role=Role.OWNER)
    assert person.client().get("/grants").status_code == 302
    assert [person.client().get(path).status_code for path in ("/tenants", "/tenants/new")] == [302, 302]


@pytest.mark.parametrize("on_one_agent", [False, True])
def test_where_a_role_asks_for_a_second_factor_so_does_a_permission_beside_the_roles(
    on_one_agent: bool, tenant: Tenant, auditor: Person, caller: Caller, settings: Any
) -> None:
    settings.TOOLHUB_REQUIRE_MFA = ["owner"]
    owner = make_person(tenant, "otto", Role.OWNER)
    permission, on = ("agents.manage", caller.agent) if on_one_agent else ("consents.decide", None)
    pages = "/grants", "/api/v1/members"
    assert [auditor.client().get(page).status_code for page in pages] == [200, 200]

    members.give_permission(user_id=auditor.user.pk, permission=permission, on=on, by=owner.by)

    assert [auditor.client().get(page).status_code for page in pages] == [302, 403]
    settings.TOOLHUB_REQUIRE_MFA = []
    assert [auditor.client().get(page).status_code for page in pages] == [200, 200]


# Freshness.


def guarded() -> Any:
    return recently_authenticated(lambda request: HttpResponse("done"))


def asked(client: Client, operator: Person, method: str = "get", **headers: str) -> Any:
    request = getattr(RequestFactory(), method)("/guarded?x=1", headers=headers)
    request.session, request.user, request.htmx = client.session, operator.user, headers.get("HX-Request", "") == "true"
    return guarded()(request)


def grow_old(client: Client) -> None:
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 16 * 60
    session.save()


def test_signing_in_is_fresh_for_a_quarter_of_an_hour(operator: Person) -> None:
    client = Client()
    sign_in("olivia", client=client)
    assert asked(client, operator).content == b"done"

    grow_old(client)

    answer = asked(client, operator)
    assert answer.headers["Location"] == "/account/confirm?next=%2Fguarded%3Fx%3D1"
    posted = asked(client, operator, "post", Referer="http://testserver/page?y=2")
    assert posted.headers["Location"] == "/account/confirm?next=%2Fpage%3Fy%3D2"
    elsewhere = asked(client, operator, "post", Referer="https://evil.example/page")
    assert elsewhere.headers["Location"] == "/account/confirm?next=%2F"
    fragment = asked(client, operator, "post", **{"HX-Request": "true", "HX-Current-URL": "http://testserver/page"})
    assert fragment.headers["HX-Redirect"] == "/account/confirm?next=%2Fpage"
    assert client.post("/account/confirm?next=/grants", {"password": "wrong"}).status_code == 200
    confirmed = client.post("/account/confirm", {"password": PASSWORD, "next": "/grants"})
    assert confirmed.headers["Location"] == "/grants"
    assert asked(client, operator).content == b"done"


# Sessions and passwords.


def test_people_see_where_they_are_signed_in_and_end_the_others(operator: Person) -> None:
    here, there = Client(), Client(REMOTE_ADDR="192.0.2.9")
    for client in (here, there):
        sign_in("olivia", client=client)
    assert "192.0.2.9" in here.get("/account/sessions").content.decode()
    assert UserSession.objects.count() == 2

    here.post("/account/sessions")

    assert here.get("/grants").status_code == 200
    assert there.get("/grants").status_code == 302


def test_a_changed_password_ends_the_other_sessions(operator: Person) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        sign_in("olivia", client=client)
    new = "another long password"

    form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    assert here.post("/account/password", form).status_code == 302

    assert here.get("/grants").status_code == 200
    assert there.get("/grants").status_code == 302
    assert sign_in("olivia", new).status_code == 302


def test_a_forgotten_password_needs_mail(operator: Person, settings: Any) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()
    assert Client().get("/account/password/forgotten").status_code == 404
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"
    client = Client()
    assert "/account/password/forgotten" in client.get("/sign-in").content.decode()

    sent = client.post("/account/password/forgotten", {"email": "olivia@example.org"})
    assert sent.status_code == 302, sent.content.decode()
    link = re.search(r"/account/password/new/\S+", str(mail.outbox[0].body))
    assert link
    page = client.get(link[0], follow=True)
    new = "another long password"
    client.post(page.redirect_chain[-1][0], {"password1": new, "password2": new})

    assert sign_in("olivia", new).status_code == 302
    assert Client().get(link[0], follow=True).status_code == 200
    assert "does not work" in Client().get(link[0], follow=True).content.decode()


# Every page of it.


def test_pages_about_signing_in_keep_the_csp_and_are_not_kept(operator: Person) -> None:
    client = operator.client()
    for path in ("security", "app/new", "passkeys", "passkeys/new", "sessions", "password"):
        answer = client.get(f"/account/{path}")
        page = answer.content.decode()
        assert answer.status_code == 200, path
        assert "<nav id=" in page, path  # in our own frame
        assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=", page), path
        assert "no-store" in answer.headers["Cache-Control"] or "no-cache" in answer.headers["Cache-Control"], path


def test_pages_about_signing_in_are_for_oneself(operator: Person) -> None:
    mine = [route for route in console_routes() if route.path.startswith("account/") and not route.takes]
    assert len(mine) > 15
    for route in mine:
        answer = Client().get(f"/{route.path}")
        assert answer.status_code in (200, 302, 401, 404, 405), route.path
        if answer.status_code == 200:
            assert route.name in {
                "account_inactive", "socialaccount_login_cancelled", "socialaccount_login_error"
            }, route.path  # fmt: skip


def test_passkeys_of_others_are_not_found(operator: Person, auditor: Person) -> None:
    row = Authenticator.objects.create(user=auditor.user, type=Authenticator.Type.WEBAUTHN, data={"name": "k"})

    for what in ("remove", "name"):
        assert operator.client().get(f"/account/passkeys/{row.pk}/{what}").status_code == 404


# Redis.


def test_people_sign_in_while_redis_does_not_answer() -> None:
    broken = ForgivingRedisCache("redis://127.0.0.1:1/0", {})

    assert broken.add("k", 1, timeout=60) is True
    assert broken.add("k", 2, timeout=60) is False
    broken.set("k", [time.time()], timeout=60)
    assert broken.get("k")
    assert broken.delete("k") is True
    assert broken.get("k") is None
