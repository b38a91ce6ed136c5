"""Secret leaks: is a secret found in what a run says, in each form in which it travels?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.end.secret_leaks import find_leaks, withhold_leaks
from invocations.sandbox.base import ConnectionRecord, RunOutcome, RunStatus, TenantFile
from registry.secrets.encodings import redact_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=32), min_size=8, max_size=60)
AROUND = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps({"a": text}),
    "json in unicode": lambda text: json.dumps({"a": text}, ensure_ascii=False),
    "url": lambda text: quote(text),
    "url, everything": lambda text: quote(text, safe=""),
    "form": lambda text: quote_plus(text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@given(secret=SECRET, before=AROUND, after=AROUND)
def test_a_secret_is_found_in_every_form_and_then_is_gone(form: str, secret: str, before: str, after: str) -> None:
    said = before + FORMS[form](secret) + after
    outcome = RunOutcome(RunStatus.OK, value={"said": [said]}, stdout=said)

    assert find_leaks(outcome, {"KEY": secret}) == {"result": ["KEY"], "output": ["KEY"]}
    clean, problem = withhold_leaks(outcome, {"KEY": secret})
    assert problem is not None
    assert clean.value is None
    assert find_leaks(clean, {"KEY": secret}) == {}


@given(secret=SECRET, before=st.binary(max_size=8), after=st.binary(max_size=8))
def test_a_secret_is_found_inside_a_longer_text_in_base64(secret: str, before: bytes, after: bytes) -> None:
    said = base64.b64encode(before + secret.encode() + after).decode()

    assert find_leaks(RunOutcome(RunStatus.OK, value=said), {"KEY": secret}) == {"result": ["KEY"]}


@pytest.mark.parametrize("value", [12345678, {"12345678": 1}, [[{"a": "x12345678y"}]], 12345678.5])
def test_a_secret_of_digits_is_found_in_numbers_and_names(value: object) -> None:
    assert find_leaks(RunOutcome(RunStatus.OK, value=value), {"PIN": "12345678"}) == {"result": ["PIN"]}


def test_what_holds_no_secret_is_left_as_it_is() -> None:
    outcome = RunOutcome(RunStatus.OK, value={"text": "nothing here"}, stdout="a line")

    assert withhold_leaks(outcome, {"KEY": "hunter2hunter2"}) == (outcome, None)
    assert withhold_leaks(outcome, {}) == (outcome, None)


@pytest.mark.parametrize("status", [RunStatus.TIMED_OUT, RunStatus.LOST, RunStatus.CANCELLED])
def test_a_run_that_was_stopped_stays_stopped_and_its_output_is_redacted(status: RunStatus) -> None:
    clean, problem = withhold_leaks(RunOutcome(status, stdout="key=hunter2hunter2\n"), {"KEY": "hunter2hunter2"})

    assert problem is None
    assert (clean.status, clean.stdout) == (status, "key=[secret KEY]\n")


def test_a_secret_within_another_is_redacted_as_the_longer_one() -> None:
    assert redact_secrets("a long-secret-value.", {"A": "secret-v", "B": "long-secret-value"}) == "a [secret B]."


def test_a_secret_in_a_name_that_was_asked_for_is_found_though_names_have_no_capitals() -> None:
    secrets = {"KEY": "Hunter2-Hunter2"}
    asked = ConnectionRecord("x.hunter2-hunter2.example.org", 443, allowed=True, rule="*.example.org")
    outcome = RunOutcome(RunStatus.OK, connections=(asked,), attempts=("net:hunter2-hunter2.evil.org:443",))

    assert find_leaks(outcome, secrets) == {"connections": ["KEY"]}
    clean, problem = withhold_leaks(outcome, secrets)

    assert problem is not None
    assert clean.connections[0].host == "[secret KEY]"
    assert clean.attempts == ("net:[secret KEY]",)


def test_a_host_that_a_rule_names_gives_no_secret_away() -> None:
    named = ConnectionRecord("db.example.org", 443, allowed=True, rule="db.example.org")

    assert find_leaks(RunOutcome(RunStatus.OK, connections=(named,)), {"DATABASE": "db.example.org"}) == {}


@pytest.mark.parametrize(
    "outcome",
    [
        RunOutcome(RunStatus.OK, skipped=(("/data/of tops3cret", "it is a link"),)),
        RunOutcome(RunStatus.OK, gone=("/data/of tops3cret",)),
        RunOutcome(RunStatus.OK, files=(TenantFile("/data/of tops3cret", b""),)),
    ],
)
def test_a_secret_in_the_name_of_a_file_is_found_whatever_became_of_the_file(outcome: RunOutcome) -> None:
    assert find_leaks(outcome, {"KEY": "tops3cret"}) == {"files": ["KEY"]}
