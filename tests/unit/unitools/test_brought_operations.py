"""Brought operations: are drafts a person's to choose and to change, and does a second run take only what is new?"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from registry.versions.manifest_checks import validate_document
from tests.support.openapi_documents import OK, read, service
from unitools.brought_operations import derive_operation_segment, derive_service_group, draft_operations
from unitools.capsules import open_capsule
from unitools.command import main
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.operations import Choices
from unitools.openapi.security import CredentialChoice

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "service.shop"
PAGE = {"name": "page", "in": "query", "schema": {"type": "integer"}}
PATHS: dict[str, Any] = {
    "/items": {
        "get": {
            "operationId": "items/list",
            "summary": "List items",
            "parameters": [PAGE],
            "responses": OK,
            "tags": ["items"],
        },
        "post": {
            "operationId": "createItem",
            "tags": ["items"],
            "requestBody": {
                "content": {
                    "application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
                }
            },
            "responses": OK,
        },
    },
    "/upload": {
        "post": {"operationId": "upload", "requestBody": {"required": True, "content": {"multipart/form-data": {}}}}
    },
}
SHOP = service(PATHS)


def changed(*way: Any, to: Any) -> dict[str, Any]:
    """The document with something in it replaced."""
    said: Any = copy.deepcopy(SHOP)
    place = said
    for step in way[:-1]:
        place = place[step]
    place[way[-1]] = to
    return dict(said)


def draft(said: dict[str, Any], *names: str, **more: Any) -> list[Any]:
    document = read(said)
    return draft_operations(document, document.select(names), GROUP, Choices(), **more).drafts


@pytest.mark.req("BRING-1")
def test_a_draft_is_a_manifest_that_a_hub_takes() -> None:
    listed, created = draft(SHOP, "items/list", "createItem")

    for each in (listed, created):
        assert [found.message for found in validate_document(each.document) if found.severity == "error"] == []
        assert each.changes is None
    assert (listed.document["id"], listed.document["display_name"]) == ("service.shop.items_list", "List items")
    assert listed.document["origin"]["operation"] == "items/list"
    assert created.document["description"] == "POST /items of Shop API. Its document says nothing about it."


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("title", "group"),
    [
        ("GitHub v3 REST API", "service.github"),
        ("The Shop API 2.0", "service.shop"),
        ("3Scale", "service.s_3scale"),
        ("API", "service.service"),
        ("\u5546\u5e97", "service.service"),
    ],
)
def test_a_group_is_named_after_the_service(title: str, group: str) -> None:
    assert derive_service_group(title) == group


@pytest.mark.req("BRING-1")
def test_an_operation_without_an_id_is_named_by_method_and_path() -> None:
    entries = read(
        service(
            {
                "/a/{b}/c.json": {"get": {}},
                "/x": {"get": {"operationId": "Repos/List-For.User"}},
                f"/{'y' * 200}": {"put": {}},
            }
        )
    ).operations

    names = [derive_operation_segment(each) for each in entries.values()]
    assert names[:2] == ["get_a_b_c_json", "repos_list_for_user"]
    assert len(names[2]) == 64


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("common", ["y" * 80, "\u8ba2\u5355" * 4])
def test_two_that_differ_in_what_no_id_has_are_two_tools(common: str) -> None:
    last = "\u4e00\u4e8c"
    said = service({f"/{number}": {"get": {"operationId": f"{common}{last[number]}"}} for number in (0, 1)})
    said["paths"] |= {f"/{2 + number}": {"get": {"operationId": last[number]}} for number in (0, 1)}
    entries = read(said).operations.values()

    names = [derive_operation_segment(each) for each in entries]

    assert len(set(names)) == len(names) == 4
    assert max(map(len, names)) <= 64
    assert all(each.isascii() for each in names)


@pytest.mark.req("BRING-1")
def test_two_that_would_be_one_tool_are_refused_with_both_names() -> None:
    said = service({"/a": {"get": {"operationId": "listItems"}}, "/b": {"get": {"operationId": "listitems"}}})

    with pytest.raises(DocumentUnfit, match="listItems and listitems would both be"):
        draft(said, "listItems", "listitems")


@pytest.mark.req("BRING-1")
def test_at_most_fifty_are_brought_at_once() -> None:
    said = service({f"/p{number}": {"get": {"operationId": f"p{number}"}} for number in range(51)})

    with pytest.raises(DocumentUnfit, match="At most 50"):
        draft(said, *(f"p{number}" for number in range(51)))


@pytest.mark.req("BRING-1")
def test_one_that_cannot_be_brought_keeps_none_of_the_others_back() -> None:
    document = read(SHOP)

    found = draft_operations(document, document.select(["upload", "items/list"]), GROUP, Choices())

    assert [each.document["origin"]["operation"] for each in found.drafts] == ["items/list"]
    (refusal,) = found.refusals
    at = "/paths/~1upload/post/requestBody/content/multipart~1form-data/schema"
    assert (refusal.operation, refusal.pointer) == ("upload", at)
    assert refusal.remedy


@pytest.mark.req("BRING-1")
def test_a_second_run_keeps_what_the_author_changed_and_raises_only_what_the_document_changed() -> None:
    first = draft(SHOP, "items/list", "createItem")
    mine = [each.document | {"description": "Mine.", "timeout_ms": 5000} for each in first]
    earlier = {each.made["origin"]["operation"]: each.made for each in first}
    size = {"name": "size", "in": "query", "schema": {"type": "integer"}}
    newer = changed("paths", "/items", "get", "parameters", to=[PAGE, size]) | {
        "info": {"title": "Shop API", "version": "8"}
    }

    listed, created = draft(newer, "items/list", "createItem", existing=mine, earlier=earlier)

    assert (created.document, created.changes) == (mine[1], [])
    assert listed.document["version"] == "1.1.0"
    assert (listed.document["description"], listed.document["timeout_ms"]) == ("Mine.", 5000)
    assert list(listed.document["input_schema"]["properties"]) == ["page", "size"]
    assert listed.document["origin"]["document"]["version"] == "8"
    kinds = {"input.property_added", "operation.changed", "origin.document_changed", "origin.description_changed"}
    assert {each.kind for each in listed.changes} == kinds


@pytest.mark.req("BRING-1")
def test_an_operation_that_moves_is_a_major_version() -> None:
    first = draft(SHOP, "createItem")
    newer = copy.deepcopy(SHOP)
    newer["paths"]["/things"] = {"post": newer["paths"]["/items"].pop("post")}

    (moved,) = draft(newer, "createItem", existing=[first[0].document], earlier={"createItem": first[0].made})

    assert moved.document["version"] == "2.0.0"
    assert "operation.reach_changed" in {each.kind for each in moved.changes}


@pytest.mark.req("BRING-1")
def test_what_a_reviewer_lowered_is_raised_again_when_the_method_is_another() -> None:
    post = changed("paths", "/items", "get", "parameters", to=[])
    post["paths"]["/items"] = {"delete": post["paths"]["/items"]["get"]}
    first = draft(SHOP, "items/list")

    (now,) = draft(post, "items/list", existing=[first[0].document], earlier={"items/list": first[0].made})

    assert (now.document["side_effect"], now.document["safety_class"]) == ("Write", "Medium")
    assert now.document["capabilities"]["net"][0]["methods"] == ["DELETE"]


@pytest.mark.req("BRING-1")
def test_other_choices_count_though_the_document_is_the_same() -> None:
    first = draft(SHOP, "items/list", "createItem")
    mine = [each.document | {"description": "Mine."} for each in first]
    earlier = {each.made["origin"]["operation"]: each.made for each in first}
    document = read(SHOP)
    choices = Choices((), (CredentialChoice("KEY", "header:X-Key"),), "Idempotency-Key")

    listed, created = draft_operations(
        document,
        document.select(["items/list", "createItem"]),
        GROUP,
        choices,
        mine,
        earlier,
        rechosen=["items/list", "createItem"],
    ).drafts

    assert (listed.document["version"], created.document["version"]) == ("2.0.0", "2.0.0")
    assert created.document["description"] == "Mine."
    assert [each["name"] for each in created.document["secrets"]] == ["KEY"]
    operation = created.document["implementation"]["operation"]
    assert (operation["idempotency_header"], created.document["idempotency"]) == ("Idempotency-Key", "keyed")
    assert "idempotency" not in listed.document
    assert [found.message for found in validate_document(created.document) if found.severity == "error"] == []


@pytest.mark.req("BRING-1")
def test_an_operation_that_its_document_calls_deprecated_later_is_deprecated() -> None:
    first = draft(SHOP, "items/list")
    newer = changed("paths", "/items", "get", "deprecated", to=True)

    (now,) = draft(newer, "items/list", existing=[first[0].document], earlier={"items/list": first[0].made})

    assert now.document["deprecations"][0]["since"] == now.document["version"] != "1.0.0"
    assert [found.message for found in validate_document(now.document) if found.severity == "error"] == []


@pytest.mark.req("BRING-1")
def test_a_manifest_of_another_operation_is_not_overwritten() -> None:
    (first,) = draft(SHOP, "items/list")
    other = first.document | {"origin": first.document["origin"] | {"operation": "other"}}
    document = read(SHOP)

    found = draft_operations(document, document.select(["items/list"]), GROUP, Choices(), [other])

    assert "brought from another operation" in found.refusals[0].message


@pytest.mark.req("BRING-1")
def test_a_tool_learns_what_is_made_of_the_same_operation_by_now() -> None:
    """Such as to send a file, where the hub could not when it was brought."""
    photo = {"schema": {"type": "object", "properties": {"photo": {"type": "string", "format": "binary"}}}}
    said = changed("paths", "/upload", "post", "requestBody", "content", "multipart/form-data", to=photo)
    (now,) = draft(said, "upload")
    made = copy.deepcopy(now.made)
    del made["implementation"]["operation"]["arguments"][0]["file"]
    made["input_schema"]["properties"]["photo"] = {"type": "string"}
    edited = made | {"description": "Puts a photo up."}

    (again,) = draft(said, "upload", existing=[edited], earlier={"upload": made})
    (as_before,) = draft(said, "upload", existing=[again.document], earlier={"upload": again.made})

    assert again.document["implementation"] == now.document["implementation"]
    assert again.document["input_schema"] == now.document["input_schema"]
    assert again.document["description"] == "Puts a photo up."
    assert again.document["version"] != "1.0.0"
    assert as_before.changes == []


# The command.


def bring(folder: Path, *arguments: str, said: dict[str, Any] = SHOP) -> int:
    (folder / "api.json").write_text(json.dumps(said))
    return main(["bring", "openapi", str(folder / "api.json"), *arguments])


def manifest_of(folder: Path, name: str) -> Any:
    return json.loads((folder / "service_shop" / "manifests" / f"service.shop.{name}.json").read_text())


@pytest.mark.req("BRING-1")
def test_the_command_lists_and_chooses_nothing_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert bring(tmp_path) == bring(tmp_path, "--list", "--tag", "items") == 0

    said = capsys.readouterr().out
    assert "has 3 operations; choose with --operation ID" in said
    assert "Read   items/list  GET /items  [items]  List items" in said
    assert not (tmp_path / "service_shop").exists()


@pytest.mark.req("BRING-1")
def test_the_command_tells_what_lies_in_other_files_whatever_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = changed("paths", to=SHOP["paths"] | {f"/far/{n}": {"$ref": f"far.yaml#/{n}"} for n in range(7)})

    for arguments in ([], ["--list"], ["--tag", "items"], ["--operation", "GET /far/0"], []):
        bring(tmp_path, *arguments, said=said)

        told = capsys.readouterr().out
        assert "Not listed: /far/4. The reference 'far.yaml#/4' leads to another file" in told
        assert "Not listed: 7 paths and operations in all." in told
        assert told.count("Not listed") == 6


@pytest.mark.req("BRING-1")
def test_the_command_writes_drafts_and_shows_a_second_time_what_is_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key = "Idempotency-Key"

    assert bring(tmp_path, "--tag", "items", "--secret", "SHOP_KEY=header:X-Key", "--idempotency-header", key) == 0
    first = manifest_of(tmp_path, "createitem")
    assert bring(tmp_path) == 0
    assert "nothing changed" in capsys.readouterr().out
    newer = changed("paths", "/items", "post", "summary", to="Make one")
    assert bring(tmp_path, said=newer) == 0

    said, now = capsys.readouterr().out, manifest_of(tmp_path, "createitem")
    assert "service.shop.createitem 1.0.1  Write, POST https://api.example.org/v1/items" in said
    assert "description.changed" in said
    assert (now["secrets"], now["idempotency"]) == (first["secrets"], "keyed")
    assert manifest_of(tmp_path, "items_list")["version"] == "1.0.0"


@pytest.mark.req("BRING-1")
def test_a_second_run_takes_other_choices_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bring(tmp_path, "--tag", "items", "--secret", "SHOP_KEY=header:X-Key") == 0

    assert bring(tmp_path, "--secret", "OTHER_KEY=query:key", "--idempotency-header", "Idempotency-Key") == 0
    assert "operation.reach_changed" in capsys.readouterr().out
    assert bring(tmp_path) == 0

    assert "nothing changed" in capsys.readouterr().out
    now = manifest_of(tmp_path, "createitem")
    assert (now["version"], now["idempotency"], now["secrets"][0]["name"]) == ("2.0.0", "keyed", "OTHER_KEY")


@pytest.mark.req("BRING-1")
def test_the_command_says_what_is_gone_and_what_cannot_be_brought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bring(tmp_path, "--operation", "items/list", "--operation", "upload") == 2
    refused = capsys.readouterr().err
    assert "upload is not brought: The form is no plain object" in refused
    assert "/paths/~1upload/post/requestBody" in refused
    before = manifest_of(tmp_path, "items_list")

    assert bring(tmp_path, said=service({"/x": {"get": {"operationId": "x"}}})) == 2

    assert "no operation items/list any more" in capsys.readouterr().err
    assert manifest_of(tmp_path, "items_list") == before


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("typed", ["KEY=s3cret-value", "s3cret-value", "key=s3cret-value"])
def test_a_secret_that_was_typed_by_mistake_is_neither_printed_nor_kept(
    typed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert bring(tmp_path, "--tag", "items", "--secret", typed) != 0

    assert "s3cret" not in "".join(capsys.readouterr())
    assert not (tmp_path / "service_shop").exists()


@pytest.mark.req("BRING-1")
def test_a_choice_that_does_for_none_is_not_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert bring(tmp_path, "--tag", "items", "--server", "http://shop.example.org") == 2
    assert not (tmp_path / "service_shop").exists()

    assert bring(tmp_path, "--tag", "items") == 0


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("manifests/service.shop.createitem.json", []),
        ("manifests/service.shop.createitem.json", {"origin": {"document": {}, "operation": "createItem"}}),
        ("manifests/service.shop.createitem.json", {"id": "a", "version": "1.0.0", "origin": {"document": {}}}),
        ("as_brought.json", []),
        ("as_brought.json", {"operations": []}),
        ("as_brought.json", {"operations": {"createItem": 5}}),
        ("as_brought.json", {"choices": {"secrets": 5}}),
    ],
)
def test_a_file_that_was_spoiled_is_named(
    file: str, said: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bring(tmp_path, "--tag", "items") == 0
    (tmp_path / "service_shop" / file).write_text(json.dumps(said))

    assert bring(tmp_path) == 1
    assert file in capsys.readouterr().err


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--operation", "none"], 2, "no operation"),
        (["--secret", "lower", "--tag", "items"], 1, "NAME in capitals"),
        (["--secret", "KEY=odd", "--tag", "items"], 2, "no way to send it"),
        (["--idempotency-header", "a b", "--tag", "items"], 1, "no name of a header"),
        (["--group", "Odd", "--tag", "items"], 1, "no name for tools"),
    ],
)
def test_the_command_refuses_with_a_remedy(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert bring(tmp_path, *arguments) == status
    assert message in capsys.readouterr().err


@pytest.mark.req("BRING-1")
def test_what_was_brought_is_packed_like_any_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert bring(tmp_path, "--tag", "items") == 0

    assert main(["pack", "service_shop"]) == 0

    found = open_capsule((tmp_path / "service_shop.capsule").read_bytes())
    assert [each["id"] for each in found.tools] == ["service.shop.createitem", "service.shop.items_list"]
    assert list(found.files) == [
        "service_shop/as_brought.json",
        *(f"service_shop/manifests/{each['id']}.json" for each in found.tools),
    ]
