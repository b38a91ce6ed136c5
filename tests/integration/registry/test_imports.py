"""Imports: do a document and what a server lists become drafts, and drafts versions that wait for their review, in the console?"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from evidence.models import Fact
from kernel.problems import Conflict
from registry.imports import drafts as import_drafts
from registry.imports import remote_lists, submissions
from registry.imports import services as imports
from registry.imports.known_sources import KNOWN_SOURCES
from registry.imports.models import Import
from registry.imports.turns import taking_turn
from registry.models import ToolVersion
from tests.support.import_sources import URL, import_list, list_tools, make_shop_document, write_json, write_operations
from unitools.mcp_listings import Listing
from unitools.openapi.documents import read_document

if TYPE_CHECKING:
    from django.test import Client

    from registry.imports.known_sources import KnownSource
    from tests.conftest import Person
    from unitools.openapi.documents import OpenApiDocument

pytestmark = pytest.mark.django_db


def data_of(kind: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(bytes(Fact.objects.filter(kind=kind).latest("pk").leaf))["data"]
    return data


def upload(client: Client, data: bytes, **fields: str) -> Any:
    file = io.BytesIO(data)
    file.name = "document.json"
    return client.post("/bring/document", fields | {"file": file})


@pytest.mark.req("BRING-1")
def test_a_document_is_uploaded_chosen_from_corrected_and_submitted(developer: Person) -> None:
    client = developer.client()

    answer = upload(client, write_json(make_shop_document()), secrets="SHOP_TOKEN")

    row = Import.objects.get()
    assert answer.url == f"/bring/{row.wire_id}"
    assert (row.group, row.drafts) == ("service.shop", [])  # nothing is chosen beforehand
    page = client.get(answer.url, {"tag": "search"}).text
    assert "searchItems" in page
    assert "getItem" not in page

    chosen = client.post(f"{answer.url}/choose?tag=search", {"names": ["searchItems", "getItem"]})
    assert chosen.headers["Location"] == f"/bring/{row.wire_id}?tag=search#drafts"
    draft = f"/bring/{row.wire_id}/drafts/service.shop.searchitems"
    fields = {"description": "Looks.\r\nAnd finds.", "side_effect": "Read", "safety_class": "Low", "timeout_ms": "5000"}
    refused = client.post(draft, fields)
    assert refused.status_code == 422
    assert "Write why the effect is another one" in refused.text
    assert client.post(draft, fields | {"reason": "A search changes nothing."}).status_code == 302

    client.post(f"/bring/{row.wire_id}/submit")

    versions = {each.tool.name: each for each in ToolVersion.objects.select_related("tool")}
    assert versions.keys() == {"service.shop.searchitems", "service.shop.getitem"}
    search = versions["service.shop.searchitems"]
    assert (search.side_effect, search.version, search.submitted_by) == ("Read", "1.0.0", developer.by.id)
    assert search.view.description == "Looks.\nAnd finds."
    assert search.view.secrets[0]["name"] == "SHOP_TOKEN"
    effect = data_of("import.effect_chosen")
    assert (effect["proposed"], effect["chosen"]) == ("Write", "Read")
    assert "changes nothing" not in json.dumps(effect)
    read = data_of("import.read")
    assert (read["digest"], read["offered"]) == (row.digest, 2)
    assert len(data_of("import.submitted")["versions"]) == 2


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "cannot be read"),
        (b'{"openapi": "4.0.0"}', "no OpenAPI document"),
        (b"a: &x [1]\nb: *x\n", "alias of YAML"),
    ],
)
def test_a_document_that_cannot_be_brought_says_why_and_nothing_typed_is_lost(
    data: bytes, said: str, developer: Person
) -> None:
    answer = upload(developer.client(), data, secrets="SHOP_TOKEN", group="acme.shop")

    assert answer.status_code == 422
    assert said in answer.text
    assert "SHOP_TOKEN" in answer.text
    assert "acme.shop" in answer.text
    assert not Import.objects.exists()


@pytest.mark.req("BRING-1")
def test_an_operation_that_refers_to_another_file_is_named_with_its_place(developer: Person) -> None:
    outside = {"get": {"operationId": "far", "responses": {}, "parameters": [{"$ref": "other.json#/x"}]}}
    row = imports.import_document(data=write_json(make_shop_document(**{"/far": outside})), by=developer.by)

    client = developer.client()
    client.post(f"/bring/{row.wire_id}/choose", {"names": ["far", "getItem"]})

    page = client.get(f"/bring/{row.wire_id}").text
    assert "leads to another file" in page
    assert "npx @redocly/cli bundle" in page
    assert [each["name"] for each in Import.objects.get().drafts] == ["getItem"]


@pytest.mark.req("BRING-1")
def test_a_path_that_lies_in_another_file_is_named_and_the_others_are_brought(developer: Person) -> None:
    client = developer.client()

    answer = upload(client, write_json(make_shop_document(**{"/far": {"$ref": "paths/far.yaml"}})))

    page = client.get(answer.url).text
    assert "paths/far.yaml" in page
    assert "npx @redocly/cli bundle" in page
    row = Import.objects.get()
    assert len(row.offered) == 2
    client.post(f"{answer.url}/choose", {"names": ["searchItems"]})
    assert "paths/far.yaml" in client.get(answer.url).text  # as long as the document has it
    client.post(f"{answer.url}/submit")
    assert ToolVersion.objects.count() == 1
    assert "paths/far.yaml" in client.get(answer.url).text
    alone = make_shop_document() | {"paths": {"/far": {"$ref": "paths/far.yaml"}}}
    refused = upload(client, write_json(alone), group="acme.far")
    assert refused.status_code == 422
    assert "npx @redocly/cli bundle" in refused.text


@pytest.mark.req("BRING-1")
def test_nobody_brings_tools_who_may_not_submit_or_is_of_another_tenant(
    developer: Person, auditor: Person, stranger: Person
) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), by=developer.by)

    assert auditor.client().get("/bring").status_code == 403
    assert stranger.client().get(f"/bring/{row.wire_id}").status_code == 404
    assert stranger.client().post(f"/bring/{row.wire_id}/submit").status_code == 404


@pytest.mark.req("BRING-1")
def test_an_import_that_is_removed_leaves_its_versions(developer: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)

    developer.client().post(f"/bring/{row.wire_id}/remove")

    assert not Import.objects.exists()
    assert ToolVersion.objects.count() == 1
    assert data_of("import.removed")["group"] == "service.shop"


@pytest.mark.req("BRING-1")
def test_a_known_service_is_drafted_when_its_document_is_uploaded(developer: Person) -> None:
    client = developer.client()
    assert "Stripe" in client.get("/bring/known").text
    form = client.get("/bring/document?known=stripe").text
    assert "service.stripe" in form
    assert "github.com/stripe/openapi" in form
    balance = {"get": {"operationId": "GetBalance", "responses": {"200": {"description": "it"}}}}
    file = io.BytesIO(write_json(make_shop_document(**{"/balance": balance})))
    file.name = "stripe.json"

    client.post(
        "/bring/document?known=stripe", {"file": file, "group": "service.stripe", "secrets": "STRIPE_KEY=bearer"}
    )

    row = Import.objects.get()
    assert [each["name"] for each in row.drafts] == ["GetBalance"]
    assert "/balance" in row.drafts[0]["document"]["implementation"]["operation"]["path"]


@pytest.mark.req("BRING-2")
def test_a_known_server_has_its_effect_and_the_reason_for_it(developer: Person) -> None:
    answer = developer.client().post("/bring/known/take", {"known": "calculator"})
    row = Import.objects.get()
    assert answer.headers["Location"] == f"/bring/{row.wire_id}"
    assert (row.source["version"], row.wanted) == ("0.2.1", ["calculate"])
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}}
    listing = Listing("2025-11-25", {"calculate": {"name": "calculate", "inputSchema": schema}})
    row.source |= {"found": {"version": "0.2.1", "start": {"script": "mcp-server-calculator"}}}

    with transaction.atomic():
        imports.keep_listing(row, listing, by=developer.by)
    [made] = submissions.submit_import(import_id=row.pk, by=developer.by)

    assert made.side_effect == "None"
    assert (data_of("import.effect_chosen")["proposed"], made.submitted_by) == ("Write", developer.by.id)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("known", [each for each in KNOWN_SOURCES if each.kind == "package"], ids=lambda each: each.key)
def test_a_known_server_is_taken_chosen_and_submitted_with_three_clicks(known: KnownSource, developer: Person) -> None:
    client = developer.client()
    if known.takes_a_form:
        data = {"package": known.package, "version": known.version, "group": known.group, "hosts": "pages.example.org"}
        taken = client.post(f"/bring/package?known={known.key}", data)
    else:
        taken = client.post("/bring/known/take", {"known": known.key})
    row = Import.objects.get()
    assert taken.headers["Location"] == f"/bring/{row.wire_id}"
    row.source |= {"found": {"version": known.version, "start": {"script": "a-server"} | row.source["start"]}}
    schema = {"type": "object", "properties": {}}
    entries = {name: {"name": name, "description": "Of a server.", "inputSchema": schema} for name in known.wanted}
    with transaction.atomic():
        imports.keep_listing(row, Listing("2025-11-25", entries), by=developer.by)

    client.post(f"/bring/{row.wire_id}/submit")

    made = ToolVersion.objects.filter(tool__name__startswith=f"{known.group}.")
    assert made.count() == len(known.wanted)
    assert {version.view.image for version in made} == {
        "node" if known.script else next(iter(known.programs), "python")
    }


@pytest.mark.req("BRING-2")
def test_at_most_fifty_are_brought_at_once(developer: Person) -> None:
    paths = {f"/p{n}": {"get": {"operationId": f"op{n}", "responses": {}}} for n in range(51)}
    row = imports.import_document(data=write_json(make_shop_document(**paths)), by=developer.by)

    answer = developer.client().post(f"/bring/{row.wire_id}/choose", {"names": [f"op{n}" for n in range(51)]})

    assert answer.status_code == 422
    assert "At most 50 are brought at once" in answer.text
    assert answer.text.count(" checked") > 40  # what was ticked on the page is ticked still


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (write_json(make_shop_document() | {"info": {"title": "a\0b", "version": "1"}}), "/info/title"),
        (write_json(make_shop_document(**{"/a": {"get": {"tags": ["x\0"]}}})), "/paths/~1a/get/tags/0"),
        (b'openapi: 3.1.0\ninfo:\n  title: "a\\0b"\npaths: {}\n', "Line 3"),
    ],
)
def test_a_document_with_a_character_that_no_database_keeps_is_refused_with_its_place(
    data: bytes, said: str, developer: Person
) -> None:
    answer = upload(developer.client(), data, group="acme.shop")

    assert answer.status_code == 422
    assert "no database keeps" in answer.text
    assert said in answer.text


@pytest.mark.req("BRING-1")
def test_a_tenant_has_one_large_document_read_at_a_time_and_each_once(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_drafts, "MAX_SMALL_BYTES", 100)
    times = list[int]()

    def count(data: bytes) -> Any:
        times.append(len(data))
        return read_document(data)

    monkeypatch.setattr(import_drafts, "read_document", count)

    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    assert len(times) == 1
    imports.choose_tools(import_id=row.pk, names=["searchItems"], by=developer.by)
    assert len(times) == 2
    with taking_turn("document", developer.by.tenant_id, busy=""):
        busy = upload(developer.client(), write_json(make_shop_document()))
        with pytest.raises(Conflict, match="Another document is being read"):
            imports.choose_tools(import_id=row.pk, names=["getItem"], by=developer.by)
        with import_drafts.taking_document_turn(b"{}", developer.by.tenant_id):  # a small one
            pass
    assert "Another document is being read." in busy.text
    assert len(times) == 2


@pytest.mark.req("BRING-1")
def test_drafts_of_a_large_document_are_made_within_the_turn_of_its_tenant(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), by=developer.by)
    monkeypatch.setattr(import_drafts, "MAX_SMALL_BYTES", 100)
    make, refused = import_drafts.make_drafts, list[str]()

    def make_meanwhile(*args: Any, **more: Any) -> Any:
        with (
            pytest.raises(Conflict, match="Another document is being read"),
            taking_turn("document", developer.by.tenant_id, busy="Another document is being read."),
        ):
            pass
        refused.append("once")
        return make(*args, **more)

    monkeypatch.setattr(import_drafts, "make_drafts", make_meanwhile)
    imports.choose_tools(import_id=row.pk, names=["getItem"], by=developer.by)
    imports.import_document(data=write_json(make_shop_document()), wanted=["searchItems"], by=developer.by)

    assert refused == ["once", "once"]
    with taking_turn("document", developer.by.tenant_id, busy=""):  # it is given back
        pass


@pytest.mark.req("BRING-1")
def test_a_document_that_is_read_anew_meanwhile_is_not_chosen_from_as_it_was(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = imports.import_document(data=write_operations(2, "Old"), group="acme.shop", by=developer.by)
    read = import_drafts.read_source_document

    def read_late(data: bytes) -> OpenApiDocument:
        monkeypatch.setattr(import_drafts, "read_source_document", read)
        imports.import_document(data=write_operations(2, "New"), group="acme.shop", by=developer.by)
        return read(data)

    monkeypatch.setattr(import_drafts, "read_source_document", read_late)
    with pytest.raises(Conflict, match="read anew meanwhile"):
        imports.choose_tools(import_id=row.pk, names=["op0"], by=developer.by)


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Mcp-Session-Id", "Cookie"]
)
def test_a_token_is_sent_in_no_header_that_steers_the_request(name: str, developer: Person) -> None:
    fields = {"url": URL, "secret": f"SHOP=header:{name}", "token": "internal.example.com"}

    answer = developer.client().post("/bring/server", fields)

    assert answer.status_code == 422
    assert "in no header that HTTP, the hub or MCP writes itself" in answer.text


@pytest.mark.req("TOOLS-16")
def test_a_tenant_has_one_list_read_at_a_time_and_none_without_end(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = developer.client()
    with taking_turn("remote-list", developer.by.tenant_id, busy=""):
        busy = client.post("/bring/server", {"url": URL})
    monkeypatch.setattr(remote_lists, "DEADLINE_S", 0.0)
    late = client.post("/bring/server", {"url": URL})

    assert "Another server is being asked" in busy.text
    assert "did not list its tools within" in late.text


@pytest.mark.req("BRING-1")
def test_pages_of_imports_ask_as_much_for_many_tools_as_for_one(developer: Person) -> None:
    def count_queries(count: int) -> list[int]:
        names, group = [f"t{n}" for n in range(count)], f"many.of_{count}"
        row = import_list(list_tools(*names), group=group, wanted=names, by=developer.by)
        submissions.submit_import(import_id=row.pk, by=developer.by)
        found = []
        for address in (f"/bring/{row.wire_id}", "/bring", "/bring/known"):
            with CaptureQueriesContext(connection) as asked:
                assert developer.client().get(address).status_code == 200
            found.append(len(asked))
        return found

    count_queries(1)  # what a process asks only once

    assert count_queries(2) == count_queries(20)


@pytest.mark.req("BRING-1")
def test_a_tag_that_would_turn_the_text_around_is_shown_as_what_it_is(developer: Person) -> None:
    said = make_shop_document()
    said["paths"]["/items/{id}"]["get"]["tags"] = ["\u202eabc"]
    row = imports.import_document(data=write_json(said), by=developer.by)

    page = developer.client().get(f"/bring/{row.wire_id}").text

    assert ">\u202eabc" not in page
