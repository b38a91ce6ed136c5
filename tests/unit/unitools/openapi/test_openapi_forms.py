"""Forms of OpenAPI documents: how do their parts, the headers of parts and files among them become arguments?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openapi_documents import (
    BYTES,
    MULTIPART,
    form,
    make,
    notes_of,
    of_parameters,
    of_schemas,
    operation_of,
    parameter,
    read,
    sending,
)
from unitools.checks import check_manifest
from unitools.openapi import bodies
from unitools.openapi.documents import DocumentUnfit, OpenApiDocument
from unitools.openapi.operations import MAX_NOTES
from unitools.openapi.plain_objects import PlainObject, flatten_object


@pytest.mark.req("BRING-1")
def test_parts_are_written_as_the_encoding_of_the_document_says() -> None:
    properties = {
        "about": {"type": "object", "properties": {"a": {"type": "string"}}},
        "all": {"type": "array", "items": {"type": "object"}},
        "photo": BYTES,
        "raw": {},
        "note": {"type": "string"},
        "sheet": {"type": "object"},
    }
    encoding = {
        "all": {"contentType": "application/json"},
        "photo": {"contentType": "image/png, image/jpeg; q=1", "headers": {"X-Odd": {}}},
        "raw": {"contentType": "application/pdf"},
        "note": {"contentType": "text/markdown"},
        "sheet": {"contentType": "application/xml"},
    }
    document = sending(form(properties, encoding))

    made, _ = make(document)

    said = {each["name"]: each for each in operation_of(made)["arguments"] if "header" not in each}
    assert said["all"]["as_json"] is True
    assert said["photo"]["media_types"] == ["image/png", "image/jpeg"]
    assert (said["raw"]["file"], said["raw"]["media_types"]) == (True, ["application/pdf"])
    assert said["note"]["media_types"] == ["text/markdown"]
    assert "sheet" not in said
    assert "as_json" not in said["about"]
    notes = notes_of(document)
    assert "'sheet' is application/xml, and is not sent." in notes
    with pytest.raises(DocumentUnfit, match="'sheet' is application/xml, which is not written"):
        make(sending(form(properties, encoding, required=["sheet"])))


@pytest.mark.req("BRING-1")
def test_headers_of_a_part_are_arguments_of_their_own() -> None:
    headers = {
        "X-Rate": {"required": True, "description": "So fast.", "schema": {"type": "integer"}},
        "X-Tags": {"schema": {"type": "array", "items": {"type": "string"}}},
        "Content-Type": {"schema": {"type": "string"}},
        "Content-Disposition": {"schema": {"type": "string"}},
        "Transfer-Encoding": {"schema": {"type": "string"}},
        "X-Api-Key": {"schema": {"type": "string"}},
        "X-Shop": {"schema": {"type": "string"}},
        "X-RATE": {"schema": {"type": "string"}},
        "X-About": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        "X-Odd": {"required": True, "style": "form", "schema": {"type": "string"}},
        "X-Other": {"content": {"application/xml": {}}},
    }
    shop = {"securitySchemes": {"shop": {"type": "apiKey", "in": "header", "name": "x-shop"}}}
    document = sending(form({"photo": BYTES}, {"photo": {"headers": headers}}, required=["photo"]))
    document["components"] = shop

    made, _ = make(document)

    assert operation_of(made)["arguments"][1:] == [
        {"argument": "photo_X-Rate", "in": "body", "name": "photo", "header": "X-Rate"},
        {"argument": "photo_X-Tags", "in": "body", "name": "photo", "header": "X-Tags"},
        {"argument": "photo_X-About", "in": "body", "name": "photo", "header": "X-About", "as_json": True},
        {"argument": "photo_X-Odd", "in": "body", "name": "photo", "header": "X-Odd"},
    ]
    said = made["input_schema"]
    assert said["required"] == ["photo", "photo_X-Rate", "photo_X-About", "photo_X-Odd"]
    assert said["properties"]["photo_X-About"]["type"] == "object"
    assert [each for each in check_manifest(made) if each.severity == "error"] == []
    assert said["properties"]["photo_X-Rate"] == {"description": "So fast.", "type": "integer"}
    assert said["properties"]["photo_X-Tags"]["description"] == "The header X-Tags of the part photo."
    notes = notes_of(document)
    assert "are the form's own to say, and are not sent: 'Content-Disposition', 'Transfer-E" in notes
    assert "These headers of a part say who is asking, and are not sent: 'X-Api-Key', 'X-Shop'." in notes
    assert "These headers of a part are called as another one is, and are not sent: 'X-RATE'." in notes
    assert "These headers of a part are not written as texts or JSON are, and are not sent: 'X-Other'." in notes
    assert "'form' is no style of header; simple is written." in notes


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("schema", "is_always_there"),
    [
        (BYTES, True),
        ({"type": "array", "items": BYTES}, False),
        ({"type": "string", "nullable": True}, False),
    ],
)
def test_a_header_has_to_be_said_only_where_its_part_is_always_there(
    schema: dict[str, Any], is_always_there: bool
) -> None:
    headers = {"X-Rate": {"required": True, "schema": {"type": "integer"}}}

    made, _ = make(sending(form({"photo": schema}, {"photo": {"headers": headers}}, required=["photo"])))

    assert made["input_schema"]["required"] == ["photo", *(["photo_X-Rate"] if is_always_there else [])]


@pytest.mark.req("BRING-1")
def test_headers_that_may_be_left_out_are_where_they_would_be_too_many_arguments() -> None:
    headers: dict[str, Any] = {f"X-A{number}": {} for number in range(20)} | {"X-Rate": {"required": True}}
    properties = {f"p{number}": {"type": "string"} for number in range(290)}
    content = form(properties, {"p0": {"headers": headers}}, required=["p0"])

    made, notes = make(sending(content))

    assert len(made["input_schema"]["properties"]) == 291
    assert "p0_X-Rate" in made["input_schema"]["required"]
    assert "20 headers of parts that may be left out are." in " ".join(each.message for each in notes)


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_notes_of_one_operation_end() -> None:
    headers: dict[str, Any] = {f"Content-{number}": {} for number in range(900)}

    noted = make(sending(form({"photo": BYTES}, {"photo": {"headers": headers}})))[1]
    many = make(of_parameters(*(parameter(f"Sec-{number}", "header") for number in range(1_000))))[1]

    assert len([each for each in noted if "own to say" in each.message]) == 1
    assert len(many) == MAX_NOTES + 1
    assert many[-1].message == "800 more things are otherwise than the document says."
    with pytest.raises(DocumentUnfit, match="more than 1,000 headers"):
        make(sending(form({"photo": BYTES}, {"photo": {"headers": {f"X-{number}": {} for number in range(1_001)}}})))


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        ("X-A: 1\r\nX-B", {}, "No header can be called"),
        ("X-Api-Key", {"required": True}, "say who is asking"),
        ("X-Other", {"required": True, "content": {"application/xml": {}}}, "are not written as texts or JSON are"),
    ],
)
def test_a_header_of_a_part_that_nobody_can_say_is_refused_with_its_place(
    name: str, said: dict[str, Any], why: str
) -> None:
    content = form({"photo": BYTES}, {"photo": {"headers": {name: said}}}, required=["photo"])

    with pytest.raises(DocumentUnfit, match=why) as refused:
        make(sending(content))

    assert "/content/multipart~1form-data/encoding/photo/headers/" in refused.value.pointer
    assert refused.value.remedy


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("properties", "required", "is_said"),
    [
        ({"photo": BYTES}, ["photo"], False),
        ({"photo": BYTES}, [], True),
        ({"photos": {"type": "array", "items": BYTES}}, ["photos"], True),
        ({"title": {"type": "string", "nullable": True}}, ["title"], True),
    ],
)
def test_a_form_that_the_service_wants_says_so_where_it_could_be_without_a_part(
    properties: dict[str, Any], required: list[str], is_said: bool
) -> None:
    content = form(properties, required=required)

    wanted, _ = make(sending(content))
    optional, _ = make(sending(content, required=False))

    assert operation_of(wanted)["body"].get("required", False) is is_said
    assert "required" not in operation_of(optional)["body"]


@pytest.mark.req("BRING-1")
def test_a_form_with_files_is_sent_where_json_could_not_have_them() -> None:
    schema = {"type": "object", "properties": {"photo": BYTES}}
    plain = {"type": "object", "properties": {"title": {"type": "string"}}}
    as_both = {"application/json": {"schema": schema}, MULTIPART: {"schema": schema}}

    made, _ = make(sending(as_both))
    of_texts, _ = make(sending({"application/json": {"schema": plain}, MULTIPART: {"schema": plain}}))

    assert operation_of(made)["body"] == {"media_type": MULTIPART, "required": True}
    assert operation_of(of_texts)["body"] == {"media_type": "application/json"}


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_of_many_forms_that_differ_few_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[str]()

    def count(document: OpenApiDocument, schema: Any, pointer: str) -> PlainObject | None:
        looked.append(pointer)
        return flatten_object(document, schema, pointer)

    monkeypatch.setattr(bodies, "flatten_object", count)
    schemas = [{"type": "object", "properties": {f"p{number}": BYTES}} for number in range(99)]
    forms = {f"application/x{number}+json": {"schema": each} for number, each in enumerate(schemas)}

    made, _ = make(sending(forms | {MULTIPART: {"schema": {"type": "object", "properties": {"photo": BYTES}}}}))

    assert operation_of(made)["body"]["media_type"] == MULTIPART
    assert len(looked) == 11


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("openapi", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("name", ["required", "x-all", "properties"])
def test_names_of_what_all_holds_are_counted_each_time_that_they_are_looked_at(name: str, openapi: str) -> None:
    names = [f"x-{number}" for number in range(1_000)]
    many: dict[str, Any] = {
        "required": {"required": names},
        "x-all": {key: {} for key in names},
        "properties": {"properties": {key: {"type": "string"} for key in names}},
    }
    schema = {"type": "object", "properties": {"p": {"type": "string"}}} | many[name]
    document = read(of_schemas({"a": schema}, openapi=openapi))

    assert flatten_object(document, {"allOf": [{"$ref": "#/components/schemas/a"}] * 3}, "") is not None
    assert flatten_object(document, {"allOf": [{"$ref": "#/components/schemas/a"}] * 6}, "") is None
