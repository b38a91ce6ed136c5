"""Package imports: does a server of a package become drafts, also brought again, without losing what people have changed?"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from kernel.database.connections import database_time
from kernel.problems import SchemaInvalid
from registry.imports import drafts as import_drafts
from registry.imports import forms, submissions
from registry.imports import services as imports
from registry.imports.models import Import, ImportState
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from tests.support.calls import assert_problem
from unitools.checks import check_manifest
from unitools.mcp_listings import Listing
from unitools.npm_locks import MAX_LOCK_BYTES, read_package_lock

if TYPE_CHECKING:
    from kernel.principal import Principal
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("BRING-2")
def test_a_package_waits_for_a_worker_and_keeps_what_was_typed(developer: Person) -> None:
    client = developer.client()
    answer = client.post(
        "/bring/package", {"package": "mcp-server-sqlite", "constraints": "mcp<2", "arguments": "--db-path\n:memory:"}
    )

    row = Import.objects.get()
    assert (row.state, row.group) == (ImportState.LISTING, "mcp.sqlite")
    assert "started in a sandbox" in client.get(answer.headers["Location"]).text
    refused = client.post(f"/bring/{row.wire_id}/choose", {"names": ["x"]})
    assert refused.status_code == 422
    again = client.get(f"/bring/package?import={row.wire_id}").text
    assert "mcp&lt;2" in again
    assert ":memory:" in again
    wrong = client.post("/bring/package", {"package": "mcp-server-time", "environment": "API_KEY"})
    assert wrong.status_code == 422
    assert "A line is NAME=VALUE" in wrong.text


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_value_that_looks_like_a_secret_is_no_environment(developer: Person, caller: Caller) -> None:
    typed = {"package": "mcp-server-time", "environment": "ZONE=eu\nAPI_TOKEN=s3cr3t-of-mine"}

    page = developer.client().post("/bring/package", typed)
    answer = caller.post(
        "/imports/package", {"package": "mcp-server-time", "environment": ["API_TOKEN=s3cr3t-of-mine"]}
    )

    assert page.status_code == 422
    assert "API_TOKEN looks like a secret" in page.text
    error = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")["error"]
    [finding] = error["details"]["findings"]
    assert finding["pointer"] == "/environment"
    assert "name it under secrets, without a value" in finding["message"]
    assert "s3cr3t" not in answer.content.decode()
    assert not Import.objects.exists()
    plain = [
        "GIT_CONFIG_KEY_0=safe.directory",
        "AUTH_MODE=none",
        "KEYS_DIR=/data/keys",
        "DISABLE_AUTH=1",
        "HTTP_AUTH=off",
    ]
    answer = caller.post("/imports/package", {"package": "mcp-server-git", "environment": plain})
    assert answer.status_code == 201, answer.json()


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_secret_that_is_named_with_the_package_is_one_of_its_drafts(developer: Person, caller: Caller) -> None:
    client = developer.client()
    both = client.post("/bring/package", {"package": "mcp-server-time", "environment": "ZONE=eu", "secrets": "ZONE"})
    small = client.post("/bring/package", {"package": "mcp-server-time", "secrets": "API_KEY=x"})
    client.post("/bring/package", {"package": "mcp-server-time", "environment": "ZONE=eu", "secrets": "API_KEY"})

    assert (both.status_code, "ZONE has a value in the environment" in both.text) == (422, True)
    assert (small.status_code, "A value never stands here." in small.text) == (422, True)
    row = Import.objects.get()
    variables = [{"name": "ZONE", "value": "eu"}, {"name": "API_KEY", "secret": "API_KEY"}]
    assert row.source["start"] == {"environment": variables}
    again = client.get(f"/bring/package?import={row.wire_id}").text
    assert "ZONE=eu</textarea>" in again
    assert "API_KEY</textarea>" in again
    row.source |= {"found": {"version": "1.0.0", "start": row.source["start"] | {"script": "mcp-server-time"}}}
    listing = Listing("2025-11-25", {"look": {"name": "look", "inputSchema": {"type": "object", "properties": {}}}})
    with transaction.atomic():
        imports.keep_listing(row, listing, by=developer.by)
    [draft] = imports.choose_tools(import_id=row.pk, names=["look"], by=developer.by).drafts
    assert draft["document"]["implementation"]["server"]["environment"] == variables
    assert [each["name"] for each in draft["document"]["secrets"]] == ["API_KEY"]
    assert not [each for each in check_manifest(draft["document"]) if each.severity == "error"]
    answer = caller.post("/imports/package", {"package": "mcp-server-git", "secrets": ["GIT_TOKEN"]})
    assert answer.status_code == 201, answer.json()


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_variable_in_small_letters_is_given_a_secret_in_capitals(developer: Person, caller: Caller) -> None:
    answer = caller.post("/imports/package", {"package": "mcp-server-git", "secrets": ["api_key", "_authToken"]})
    value = caller.post("/imports/package", {"package": "mcp-server-git", "secrets": ["hunter2"]})

    assert answer.status_code == 201, answer.json()
    row = Import.objects.get()
    assert row.source["start"]["environment"] == [
        {"name": "api_key", "secret": "API_KEY"},
        {"name": "_authToken", "secret": "AUTHTOKEN"},
    ]
    again = developer.client().get(f"/bring/package?import={row.wire_id}").text
    assert "api_key\n_authToken</textarea>" in again
    [finding] = assert_problem(value, 422, "SCHEMA.VALIDATION_FAILED")["error"]["details"]["findings"]
    assert finding["message"] == "A line is a name in capitals, such as API_KEY. A value never stands here."


def npm_lock(name: str = "@a/server", version: str = "1.0.0", **more: Any) -> io.BytesIO:
    entry = {"version": version, "integrity": f"sha512-{'A' * 86}==", "bin": {"a-server": "server.mjs"}} | more
    file = io.BytesIO(json.dumps({"lockfileVersion": 3, "packages": {"": {}, f"node_modules/{name}": entry}}).encode())
    file.name = "package-lock.json"
    return file


@pytest.mark.req("BRING-2")
def test_a_package_of_npm_is_brought_with_the_lock_that_an_author_uploads(developer: Person) -> None:
    client = developer.client()
    without = client.post("/bring/package", {"package": "npm:@a/server"})
    other = client.post("/bring/package", {"package": "npm:@a/other", "lock": npm_lock()})
    built = client.post("/bring/package", {"package": "npm:@a/server", "lock": npm_lock(hasInstallScript=True)})
    answer = client.post("/bring/package", {"package": "npm:@a/server", "lock": npm_lock(), "keeps": "tenant"})

    assert (without.status_code, "A hub does not run npm" in without.text) == (422, True)
    assert (other.status_code, "Say which program" in other.text) == (422, True)
    assert (built.status_code, "has an install script" in built.text) == (422, True)
    row = Import.objects.get()
    assert answer.headers["Location"] == f"/bring/{row.wire_id}"
    assert (row.group, row.source["version"], row.source["start"]) == ("mcp.a", "1.0.0", {"script": "a-server"})
    row.source |= {"found": {"version": "1.0.0", "start": {"script": "a-server"}}}
    listing = Listing("2025-11-25", {"look": {"name": "look", "inputSchema": {"type": "object", "properties": {}}}})
    with transaction.atomic():
        imports.keep_listing(row, listing, by=developer.by)
    [draft] = imports.choose_tools(import_id=row.pk, names=["look"], by=developer.by).drafts
    document = draft["document"]
    assert document["dependencies"] == ["npm:@a/server@1.0.0"]
    assert [each.split()[:2] for each in document["dependency_lock"]] == [
        ["npm:node_modules/@a/server", "@a/server@1.0.0"]
    ]
    assert document["state"] == {"kind": "files", "scope": "tenant"}

    again = client.post(f"/bring/package?import={row.wire_id}", {"package": "npm:@a/server", "script": "a-server"})

    assert again.status_code == 302


@pytest.mark.req("BRING-2")
def test_an_upload_that_is_no_lock_is_refused_before_it_is_read(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer_to(data: bytes) -> Any:
        file = io.BytesIO(data)
        file.name = "package-lock.json"
        return developer.client().post("/bring/package", {"package": "npm:@a/server", "lock": file})

    listed = answer_to(b'{"lockfileVersion": 3, "packages": []}')
    monkeypatch.setattr(forms, "read_package_lock", None)
    large = answer_to(b" " * (MAX_LOCK_BYTES + 1))

    assert (listed.status_code, "This is no package-lock.json of npm" in listed.text) == (422, True)
    assert (large.status_code, "The file is larger than 8 MiB." in large.text) == (422, True)


def import_server(*, package: str = "a-server", by: Principal, **said: Any) -> Import:
    """A server of a package that was brought, as a worker has listed it, with a draft of its one tool."""
    row = imports.import_package(package=package, group="acme.server", wanted=["look"], by=by, **said)
    row.source |= {"found": {"version": "1.0.0", "start": {"script": "a-server"} | row.source["start"]}}
    listing = Listing("2025-11-25", {"look": {"name": "look", "inputSchema": {"type": "object", "properties": {}}}})
    with transaction.atomic():
        return imports.keep_listing(row, listing, by=by)


def net_of(document: dict[str, Any]) -> list[str]:
    return [each["host"] for each in document.get("capabilities", {}).get("net", [])]


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_secret_that_is_named_in_a_draft_takes_the_place_of_a_value(developer: Person) -> None:
    row = import_server(environment=["ZONE=eu", "HTTP_AUTH=off"], secrets=["api_key"], by=developer.by)
    page = f"/bring/{row.wire_id}/drafts/{row.drafts[0]['id']}"
    fields = {"description": "Looks.", "side_effect": "Write", "safety_class": "Medium", "timeout_ms": "5000"}

    answer = developer.client().post(page, fields | {"secrets": "API_KEY\nHTTP_AUTH\n_token"})

    assert answer.status_code == 302, answer.text
    row.refresh_from_db()
    [draft] = row.drafts
    assert draft["document"]["implementation"]["server"]["environment"] == [
        {"name": "ZONE", "value": "eu"},
        {"name": "api_key", "secret": "API_KEY"},
        {"name": "HTTP_AUTH", "secret": "HTTP_AUTH"},
        {"name": "_token", "secret": "TOKEN"},
    ]
    assert [each["name"] for each in draft["document"]["secrets"]] == ["API_KEY", "HTTP_AUTH", "TOKEN"]
    assert not [each for each in check_manifest(draft["document"]) if each.severity == "error"]


@pytest.mark.req("BRING-2")
def test_a_package_that_is_brought_again_reaches_what_is_said_now_and_what_a_person_added(developer: Person) -> None:
    row = import_server(hosts=["a.example.org", "b.example.org"], by=developer.by)
    [draft] = row.drafts
    added = draft["document"] | {
        "capabilities": {"net": [*draft["document"]["capabilities"]["net"], {"host": "c.example.org"}]}
    }
    imports.edit_draft(import_id=row.pk, tool=draft["id"], document=added, reason="", by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)

    [fewer] = import_server(hosts=["a.example.org"], by=developer.by).drafts
    [other] = import_server(hosts=["d.example.org"], by=developer.by).drafts
    imports.remove_import(import_id=row.pk, by=developer.by)
    [unknown] = import_server(hosts=["a.example.org"], by=developer.by).drafts

    assert net_of(fewer["document"]) == ["a.example.org", "c.example.org"]
    assert [each["pointer"] for each in fewer["changes"]] == ["/capabilities/net/1"]  # b goes
    assert net_of(other["document"]) == ["c.example.org", "d.example.org"]
    # What was said before is gone with the import, so it is what is said now and nothing else.
    assert net_of(unknown["document"]) == ["a.example.org"]


@pytest.mark.req("BRING-2")
def test_a_version_that_was_refused_is_not_what_people_have_changed(developer: Person, operator: Person) -> None:
    import_server(hosts=["a.example.org"], by=developer.by)
    row = Import.objects.get()
    submissions.submit_import(import_id=row.pk, by=developer.by)
    import_server(hosts=["a.example.org", "b.example.org"], by=developer.by)
    [refused] = submissions.submit_import(import_id=row.pk, by=developer.by)
    reviews.review_version(version_id=refused.pk, decision=Decision.REFUSE, note="Not b.", by=operator.by)

    [again] = import_server(hosts=["a.example.org", "b.example.org"], by=developer.by).drafts

    assert (again["base"], net_of(again["document"])) == ("1.0.0", ["a.example.org", "b.example.org"])


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("end", ["refused", "yanked"])
def test_what_a_person_has_narrowed_is_known_after_a_later_version_has_ended(
    end: str, developer: Person, operator: Person
) -> None:
    def submit_with(*hosts: str, narrow: bool = False) -> ToolVersion:
        row = import_server(hosts=list(hosts), by=developer.by)
        [draft] = row.drafts
        if narrow:
            fewer = draft["document"] | {"capabilities": {"net": [{"host": "a.example.org"}]}}
            imports.edit_draft(import_id=row.pk, tool=draft["id"], document=fewer, reason="", by=developer.by)
        [version] = submissions.submit_import(import_id=row.pk, by=developer.by)
        return version

    submit_with("a.example.org", "b.example.org", narrow=True)
    later = submit_with("a.example.org", "b.example.org", "c.example.org")
    if end == "refused":
        reviews.review_version(version_id=later.pk, decision=Decision.REFUSE, note="Not c.", by=operator.by)
    else:
        ToolVersion.objects.filter(pk=later.pk).update(yanked_at=database_time(), yanked_by=operator.by.id)

    [again] = import_server(hosts=["a.example.org", "b.example.org", "d.example.org"], by=developer.by).drafts

    assert (again["base"], net_of(again["document"])) == ("1.0.0", ["a.example.org", "d.example.org"])


@pytest.mark.req("BRING-2")
def test_of_the_newest_versions_alone_is_kept_what_the_source_made(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "MAX_MADE", 2)
    for host in "abc":
        row = import_server(hosts=[f"{host}.example.org"], by=developer.by)
        submissions.submit_import(import_id=row.pk, by=developer.by)

    kept = import_drafts.list_made(Import.objects.get(), "look")
    assert [net_of(each["made"]) for each in kept] == [["b.example.org"], ["c.example.org"]]


@pytest.mark.req("BRING-2")
def test_a_draft_has_its_lock_once(developer: Person) -> None:
    line = "npm:@a/server"
    row = import_server(
        package=line, lock=read_package_lock(npm_lock().read().decode()), script="a-server", by=developer.by
    )
    [draft] = row.drafts

    assert draft["document"]["dependency_lock"] == row.source["lock"]
    assert json.dumps(draft).count("sha512-") == 1
    submissions.submit_import(import_id=row.pk, by=developer.by)
    assert "sha512-" not in json.dumps(Import.objects.get().made)


@pytest.mark.req("BRING-2")
def test_a_lock_of_more_packages_than_a_manifest_takes_is_refused_before_a_worker_is_at_it(developer: Person) -> None:
    lines = [f"npm:node_modules/a{number} a{number}@1.0.0 sha512-{'A' * 86}==" for number in range(601)]

    with pytest.raises(SchemaInvalid, match="holds 601 packages"):
        imports.import_package(package="npm:a1", script="a", lock=lines, by=developer.by)

    assert not Import.objects.exists()
