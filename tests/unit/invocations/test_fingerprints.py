"""Fingerprints: what is the fingerprint of a call over?"""

from __future__ import annotations

from typing import Any

import pytest

from evidence import services as evidence
from invocations.calls import CallRequest, compute_fingerprints
from kernel.canonical import encode_hash_input
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import new_id
from kernel.principal import Principal

pytestmark = pytest.mark.django_db  # whoever makes the keys looks whether anything is sealed


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize("arguments", [{}, {"b": 1.5, "a": ["ü", None]}, {"beyond": 2**60}, None])
def test_it_is_over_one_document_of_all_that_changes_the_answer(arguments: Any) -> None:
    by = Principal.system("test", tenant_id=new_id())
    envelope = RequestEnvelope(request_id="r", actor={"type": "agent", "id": "x"}, locale="de-DE", currency="EUR")
    said = {"tool": "a.b.c", "arguments": arguments, "dry_run": False, "locale": "de-DE", "currency": "EUR"}
    whole = encode_hash_input(said | {"timezone": envelope.timezone})[1]

    found = compute_fingerprints(CallRequest(tool="a.b.c", arguments=arguments, envelope=envelope), by)

    assert found == {
        "arguments_fingerprint": evidence.compute_fingerprint(whole, tenant_id=by.tenant_id),
        "user_fingerprint": "",
    }
