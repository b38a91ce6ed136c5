"""Signing in with a browser: does a person with a browser set up a passkey and an authenticator app, and sign in with them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from playwright.sync_api import expect

from tests.e2e.browser import PATIENCE_MS, SEEN_SELDOM, Variant, Visitor

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.e2e.conftest import Embedded

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    return tmp_path


def sign_out(person: Visitor) -> None:
    person.page.locator("summary.avatar").click()
    person.page.get_by_role("button", name="Sign out").click()
    expect(person.page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE_MS)
    person.ready()


def open_page(person: Visitor, path: str) -> None:
    person.page.goto(person.url + path)
    person.ready()
    person.check(path.strip("/").replace("/", "-"))


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("dark", [pytest.param(False, marks=SEEN_SELDOM), True], ids=["light", "dark"])
def test_a_person_signs_in_with_a_passkey_and_with_a_code(
    own_hub: Embedded, browser: Browser, shots: Path, dark: bool
) -> None:
    assert own_hub.credentials
    password = own_hub.credentials.password("dana")
    with own_hub.served():
        url = own_hub.url.replace("127.0.0.1", "localhost")  # passkeys belong to a name
        with Visitor(browser, url, Variant("passkeys", dark=dark), shots) as dana:
            keys = dana.page.context.new_cdp_session(dana.page)
            keys.send("WebAuthn.enable")
            keys.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
            dana.sign_in("dana", password)
            open_page(dana, "/account/security")
            open_page(dana, "/account/passkeys/new")
            dana.label("Passwordless").check()
            dana.button("Add").click()
            dana.sees("Each code works once, if you lose your app or passkey.")
            dana.check("recovery-codes")
            sign_out(dana)

            dana.button("Use a passkey").click()
            expect(dana.page.locator("summary.avatar")).to_be_visible(timeout=PATIENCE_MS)
            dana.ready()

            open_page(dana, "/account/passkeys")
            open_page(dana, "/account/app/new")
            secret = dana.page.locator(".id[title]").first.get_attribute("title") or ""
            code = format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time()))))
            dana.label("Authenticator code").fill(code)
            dana.button("Activate").click()
            dana.sees("Sign-in")
            dana.ready()
            sign_out(dana)

            dana.label("Username").fill("dana")
            dana.label("Password").fill(password)
            dana.button("Sign in").click()
            dana.sees("Second step")
            dana.ready()
            dana.check("second-step")
            dana.button("Use a passkey").click()
            expect(dana.page.locator("summary.avatar")).to_be_visible(timeout=PATIENCE_MS)
            open_page(dana, "/account/sessions")
            assert dana.errors == []
