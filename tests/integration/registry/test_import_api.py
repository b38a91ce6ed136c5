"""Imports over REST: does a program bring tools as a person does in the console, under the same rules?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evidence.kinds import Kind
from evidence.models import Fact
from registry.imports import services as imports
from registry.imports.models import Import, ImportState
from registry.models import ToolVersion, VersionState
from tests.support.import_sources import DRAFTED, GROUP, URL, list_server, write_document

if TYPE_CHECKING:
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db


def bring(caller: Caller, data: bytes | None = None, **more: Any) -> Any:
    encoded = base64.b64encode(write_document("a shop") if data is None else data).decode()
    return caller.post("/imports/document", {"document": encoded, "group": GROUP} | more)


def brought(caller: Caller, **more: Any) -> dict[str, Any]:
    answer = bring(caller, **more)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()["data"]
    return found


def reason_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["reason"]


@pytest.mark.req("BRING-1")
def test_a_document_becomes_versions_that_wait_for_their_review(caller: Caller) -> None:
    made = brought(caller)
    at = f"/imports/{made['id']}"
    assert (made["kind"], made["state"], made["offered"], made["drafts"]) == ("openapi", "read", 2, [])

    offers = caller.get(f"{at}/offers?effect=Read&q=price").json()["data"]["offers"]
    chosen = caller.post(f"{at}/choose", {"names": ["getItem", offers[0]["name"]]}).json()["data"]["drafts"]
    removed = caller.delete(f"{at}/drafts/{offers_id(chosen, 'getPrice')}")
    submitted = caller.post(f"{at}/submit", {})

    assert [each["name"] for each in offers] == ["getPrice"]
    assert [each["name"] for each in chosen] == ["getItem", "getPrice"]
    assert removed.status_code == 204
    assert submitted.status_code == 201, submitted.content
    [version] = submitted.json()["data"]["versions"]
    assert (version["tool"], version["review_state"]) == (DRAFTED, "submitted")
    row = ToolVersion.objects.get(tool__name=DRAFTED)
    assert row.review_state == VersionState.SUBMITTED
    assert row.submitted_by == caller.agent.wire_id
    assert caller.get(at).json()["data"]["drafts"] == []
    assert reason_of(caller.post(f"{at}/submit", {}))[0] == 409


def offers_id(drafts: list[dict[str, Any]], name: str) -> str:
    return str(next(each["tool"] for each in drafts if each["name"] == name))


@pytest.mark.req("BRING-1")
def test_another_effect_than_the_source_proposes_needs_a_reason_which_is_evidence(caller: Caller) -> None:
    made = brought(caller, wanted=["getItem"])
    at = f"/imports/{made['id']}/drafts/{DRAFTED}"
    [draft] = made["drafts"]
    changed = draft["document"] | {"side_effect": "Write", "safety_class": "High"}

    refused = caller.put(at, {"document": changed})
    kept = caller.put(at, {"document": changed, "reason": "It counts what was asked for."})

    assert refused.status_code == 422
    assert kept.status_code == 200, kept.content
    assert kept.json()["data"]["reason"] == "It counts what was asked for."
    assert kept.json()["data"]["edited_by"] == [caller.agent.wire_id]
    assert caller.get(at).json()["data"] == kept.json()["data"]
    caller.post(f"/imports/{made['id']}/submit", {"tools": [DRAFTED]})
    assert Fact.objects.filter(kind=Kind.IMPORT_EFFECT_CHOSEN).count() == 1
    other = changed | {"id": "acme.other.tool"}
    assert caller.put(at, {"document": other}).status_code in (404, 422)


def test_a_draft_is_changed_on_condition_that_nobody_else_has(caller: Caller) -> None:
    made = brought(caller, wanted=["getItem"])
    at = f"/imports/{made['id']}/drafts/{DRAFTED}"
    tag = caller.get(at).headers["ETag"]
    document = made["drafts"][0]["document"]
    assert caller.put(at, {"document": document | {"description": "Gives one."}}).status_code == 200

    late = caller.put(at, {"document": document | {"description": "Gives two."}}, **{"If-Match": tag})

    assert reason_of(late) == (412, "STATE.PRECONDITION_FAILED")


@pytest.mark.req("BRING-1")
def test_offers_are_read_page_by_page(caller: Caller) -> None:
    at = f"/imports/{brought(caller)['id']}/offers"

    first = caller.get(f"{at}?limit=1").json()["data"]
    second = caller.get(f"{at}?limit=1&after={first['next']}").json()["data"]

    assert [each["name"] for each in first["offers"] + second["offers"]] == ["getItem", "getPrice"]
    assert second["next"] is None
    assert caller.get(f"{at}?after=nowhere").status_code == 422


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"document": "no base64!"}, "/document"),
        ({"document": ""}, "/document"),
        ({"document": "e30=", "secrets": ["hunter2"]}, "/secrets"),
        ({"document": "e30=", "group": "One"}, "/group"),
        ({"document": "e30=", "path": "/etc/passwd"}, "/path"),
    ],
)
def test_what_is_not_right_is_refused_with_its_place(caller: Caller, body: dict[str, Any], place: str) -> None:
    answer = caller.post("/imports/document", body)

    assert answer.status_code == 422, answer.content
    assert any(each["pointer"].startswith(place) for each in answer.json()["error"]["details"]["findings"])
    assert not Import.objects.exists()


@pytest.mark.req("BRING-1")
def test_a_document_that_cannot_be_brought_is_refused_with_what_to_do(caller: Caller) -> None:
    external = json.loads(write_document("a shop"))
    external["paths"]["/getItem"]["get"]["parameters"] = [{"$ref": "https://evil.example/p.json"}]

    answer = bring(caller, b"no: document")
    chosen = bring(caller, json.dumps(external).encode(), wanted=["getItem"])

    assert reason_of(answer) == (422, "IMPORT.SOURCE_UNFIT")
    refusals = chosen.json()["data"]["refusals"] if chosen.status_code == 201 else [chosen.json()["error"]["details"]]
    assert "remedy" in json.dumps(refusals) or "fix" in json.dumps(refusals)


@pytest.mark.req("BRING-1")
def test_a_large_document_is_taken_as_in_the_console(caller: Caller) -> None:
    large = json.loads(write_document("a shop")) | {"x-padding": "x" * (3 * 2**20)}

    assert bring(caller, json.dumps(large).encode()).status_code == 201


@pytest.mark.req("BRING-3")
def test_tools_of_a_server_elsewhere_are_brought(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """How such a server is asked: tests/egress/test_imports_of_remotes.py."""
    asked: list[Any] = []

    def fetch(url: str, credentials: Any, values: Any, _: Any) -> Any:
        asked.append((url, credentials, dict(values)))
        return list_server("Looks.")

    monkeypatch.setattr(imports, "fetch_remote_list", fetch)
    body = {"url": URL, "secret": "SHOP_TOKEN", "token": "typed-here-once", "group": "acme.remote", "wanted": ["look"]}

    answer = caller.post("/imports/remote", body)

    assert answer.status_code == 201, answer.content
    way = {"secret": "SHOP_TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}
    assert asked == [(URL, [way], {"SHOP_TOKEN": "typed-here-once"})]
    assert [each["tool"] for each in answer.json()["data"]["drafts"]] == ["acme.remote.look"]
    assert "typed-here-once" not in answer.content.decode() + json.dumps(
        Import.objects.values("source", "drafts").get()
    )


@pytest.mark.req("BRING-3")
def test_a_token_without_the_name_of_its_credential_is_refused(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would silently not be sent."""
    asked: list[Any] = []

    def fetch(*given: Any) -> Any:
        asked.append(given)
        return list_server("Looks.")

    monkeypatch.setattr(imports, "fetch_remote_list", fetch)

    refused = caller.post("/imports/remote", {"url": URL, "token": "typed-here-once"})
    without = caller.post("/imports/remote", {"url": URL, "group": "acme.remote"})

    assert refused.status_code == 422
    [finding] = refused.json()["error"]["details"]["findings"]
    assert (finding["pointer"], len(asked)) == ("/token", 1)
    assert without.status_code == 201


@pytest.mark.req("BRING-2")
def test_a_package_is_looked_at_by_a_worker_and_chosen_from_afterwards(caller: Caller) -> None:
    made = caller.post("/imports/package", {"package": "mcp-server-time", "constraints": ["mcp<3"]})

    assert made.status_code == 201, made.content
    assert made.json()["data"]["state"] == ImportState.LISTING
    chosen = caller.post(f"/imports/{made.json()['data']['id']}/choose", {"names": ["get_current_time"]})
    assert reason_of(chosen) == (409, "IMPORT.UNREADY")
    wrong = caller.post("/imports/package", {"package": "x; rm -rf"})
    assert wrong.status_code == 422


@pytest.mark.req("BRING-2")
def test_a_list_says_of_each_import_what_the_import_says_and_loads_nothing_long(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock stands in the source of an import, and in each of its drafts."""
    monkeypatch.setattr(imports, "fetch_remote_list", lambda *_: list_server("Looks."))
    brought(caller, wanted=["getItem"])
    caller.post("/imports/remote", {"url": URL, "group": "acme.remote", "wanted": ["look"]})
    caller.post("/imports/package", {"package": "mcp-server-time"})

    with CaptureQueriesContext(connection) as asked:
        listed = caller.get("/imports").json()["data"]["imports"]
    [said] = [each["sql"] for each in asked if 'FROM "registry_import"' in each["sql"]]

    assert [each["name"] for each in listed] == ["mcp-server-time", URL, "a shop"]
    for each in listed:
        whole = caller.get(f"/imports/{each['id']}").json()["data"]
        assert each == {name: whole[name] for name in each}
    for name in ("source", "offered", "drafts", "made", "content"):
        assert f', "registry_import"."{name}"' not in said


def test_imports_are_listed_and_forgotten(caller: Caller) -> None:
    made = brought(caller)

    listed = caller.get("/imports").json()["data"]["imports"]
    gone = caller.delete(f"/imports/{made['id']}")

    assert [each["id"] for each in listed] == [made["id"]]
    assert "drafts" not in listed[0]
    assert gone.status_code == 204
    assert caller.get(f"/imports/{made['id']}").status_code == 404
