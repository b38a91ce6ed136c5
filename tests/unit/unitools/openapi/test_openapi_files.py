"""OpenAPI files: does an operation that takes or answers files become a manifest in which an id stands for each of them?"""

from __future__ import annotations

from typing import Any

import pytest

from kernel.ids import id_pattern
from tests.support.openapi_documents import make, notes_of, of_parameters, of_schemas, parameter, read, service
from unitools.checks import check_manifest
from unitools.openapi import bodies
from unitools.openapi.documents import DocumentUnfit, OpenApiDocument
from unitools.openapi.files import FILE_ID, is_file_type
from unitools.openapi.operations import MAX_NOTES
from unitools.openapi.plain_objects import PlainObject, flatten_object

BYTES = {"type": "string", "format": "binary"}
MULTIPART = "multipart/form-data"


def sending(content: dict[str, Any], *, openapi: str = "3.0.3", required: bool = True) -> dict[str, Any]:
    body = {"required": required, "content": content}
    return of_parameters(method="post", requestBody=body) | {"openapi": openapi}


def form(properties: dict[str, Any], encoding: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties} | more
    return {MULTIPART: {"schema": schema} | ({"encoding": encoding} if encoding else {})}


def operation_of(made: dict[str, Any]) -> dict[str, Any]:
    return dict(made["implementation"]["operation"])


@pytest.mark.req("BRING-1")
def test_the_id_of_a_file_is_one_that_the_hub_gives() -> None:
    for prefix in ("art", "fil"):
        assert id_pattern(prefix).replace(prefix, "(art|fil)") == FILE_ID


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("openapi", "said"),
    [
        ("3.0.3", BYTES),
        ("3.0.3", {"type": "string", "format": "binary", "nullable": True}),
        ("3.1.0", {"type": "string", "contentMediaType": "image/png"}),
        ("3.1.0", {"type": ["string", "null"], "format": "binary"}),
        ("3.1.0", {"contentMediaType": "application/octet-stream"}),
    ],
)
def test_a_property_that_is_a_file_is_named_by_an_id(openapi: str, said: dict[str, Any]) -> None:
    content = form({"photo": said | {"description": "Of the item."}, "title": {"type": "string"}}, required=["photo"])

    made, _ = make(sending(content, openapi=openapi))

    photo = made["input_schema"]["properties"]["photo"]
    assert (photo["type"], photo["pattern"]) == ("string", FILE_ID)
    assert photo["description"].startswith("Of the item. The id of a file: ")
    assert made["input_schema"]["required"] == ["photo"]
    assert operation_of(made)["body"] == {"media_type": MULTIPART}
    assert operation_of(made)["arguments"] == [
        {"argument": "photo", "in": "body", "name": "photo", "file": True},
        {"argument": "title", "in": "body", "name": "title"},
    ]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("openapi", "said"),
    [
        ("3.0.3", {"type": "string", "format": "byte"}),
        ("3.1.0", {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}),
        ("3.1.0", {"type": "string", "contentMediaType": "application/json"}),
        ("3.0.3", {"type": "string"}),
    ],
)
def test_what_is_written_as_text_is_no_file(openapi: str, said: dict[str, Any]) -> None:
    made, _ = make(sending(form({"photo": said}), openapi=openapi))

    assert operation_of(made)["arguments"] == [{"argument": "photo", "in": "body", "name": "photo"}]


@pytest.mark.req("BRING-1")
def test_several_files_are_a_list_of_ids() -> None:
    made, _ = make(sending(form({"photos": {"type": "array", "items": BYTES}})))

    assert made["input_schema"]["properties"]["photos"]["items"] == {"type": "string", "pattern": FILE_ID}
    assert made["input_schema"]["properties"]["photos"]["maxItems"] == 20
    assert operation_of(made)["arguments"][0]["file"] is True


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


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "content",
    [
        {"application/octet-stream": {"schema": BYTES}},
        {"application/octet-stream": {}},
        {"application/octet-stream": {"schema": {"type": "string", "format": "byte"}}},
        {"application/vnd.shop.sheet": {"schema": BYTES}},
        {"image/*": {}},
    ],
)
def test_a_body_that_is_a_file_is_one_argument(content: dict[str, Any]) -> None:
    [media] = content

    made, _ = make(sending(content))

    assert made["input_schema"]["properties"]["body"]["pattern"] == FILE_ID
    assert made["input_schema"]["required"] == ["body"]
    assert operation_of(made)["body"] == {"media_type": media, "argument": "body", "file": True}


@pytest.mark.req("BRING-1")
def test_a_file_may_be_of_each_kind_that_the_document_names() -> None:
    made, _ = make(sending({"image/png": {"schema": BYTES}, "image/jpeg": {"schema": BYTES}}))

    assert operation_of(made)["body"] == {
        "media_type": "image/png",
        "argument": "body",
        "file": True,
        "media_types": ["image/png", "image/jpeg"],
    }


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("media", ["text/csv", "text/plain", "application/xml", "application/yaml"])
def test_a_body_of_text_is_one_text(media: str) -> None:
    made, _ = make(sending({media: {"schema": {"type": "string", "maxLength": 9}}}))

    assert operation_of(made)["body"] == {"media_type": media, "argument": "body"}
    assert made["input_schema"]["properties"]["body"]["type"] == "string"


@pytest.mark.req("BRING-1")
def test_a_document_of_swagger_2_sends_and_answers_files_too() -> None:
    fields = [
        {"in": "formData", "name": "photo", "type": "file", "required": True, "description": "Of the item."},
        {"in": "formData", "name": "title", "type": "string"},
    ]
    whole = {"in": "body", "name": "file", "required": True, "schema": BYTES}
    paths = {
        "/photos": {
            "post": {"operationId": "sendPhoto", "consumes": [MULTIPART], "parameters": fields, "responses": {}}
        },
        "/raw": {"put": {"operationId": "sendRaw", "consumes": ["image/png"], "parameters": [whole], "responses": {}}},
        "/pdf": {
            "get": {
                "operationId": "readPdf",
                "produces": ["application/pdf"],
                "responses": {"200": {"description": "", "schema": {"type": "file"}}},
            }
        },
    }
    document = {
        "swagger": "2.0",
        "info": {"title": "Shop", "version": "1"},
        "host": "api.example.org",
        "schemes": ["https"],
    }

    sent, _ = make(document | {"paths": paths}, "sendPhoto")
    raw, _ = make(document | {"paths": paths}, "sendRaw")
    read, _ = make(document | {"paths": paths}, "readPdf")

    assert operation_of(sent)["arguments"][0] == {"argument": "photo", "in": "body", "name": "photo", "file": True}
    assert operation_of(sent)["body"] == {"media_type": MULTIPART}
    assert sent["input_schema"]["required"] == ["photo"]
    assert operation_of(raw)["body"] == {"media_type": "image/png", "argument": "body", "file": True}
    assert operation_of(read)["accept"] == ["application/pdf"]
    assert read["limits"]["artifacts"] == 1


def answering(content: dict[str, Any]) -> dict[str, Any]:
    return of_parameters(responses={"200": {"description": "", "content": content}})


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "media", ["application/pdf", "image/png", "application/octet-stream", "application/zip", "image/*"]
)
def test_an_answer_that_is_a_file_is_left_as_an_artifact(media: str) -> None:
    made, _ = make(answering({media: {"schema": BYTES}}))

    assert operation_of(made)["accept"] == [media]
    assert made["limits"] == {"max_bytes_out": 1024 * 1024, "artifacts": 1, "artifact_bytes": 8 * 1024 * 1024}
    body = made["output_schema"]["properties"]["body"]
    assert set(body["properties"]) == {"artifact", "media_type", "bytes", "digest"}


@pytest.mark.req("BRING-1")
def test_an_answer_may_be_json_or_a_file_and_what_is_the_same_in_other_bytes_is_not_asked_for() -> None:
    item = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    several = {"application/json": {"schema": item}, "application/pdf": {"schema": BYTES}}
    same = {
        "application/json": {"schema": item},
        "application/vnd.shop.protobuf": {"schema": item},
        "application/xml": {"schema": item},
    }

    made, _ = make(answering(several))
    plain, _ = make(answering(same))

    assert operation_of(made)["accept"] == ["application/json", "application/pdf"]
    assert [sorted(each["properties"]) for each in made["output_schema"]["properties"]["body"]["anyOf"]] == [
        ["ok"],
        ["artifact", "bytes", "digest", "media_type"],
    ]
    assert "accept" not in operation_of(plain)
    assert "artifacts" not in plain["limits"]


@pytest.mark.req("BRING-1")
def test_a_long_text_may_be_left_and_a_short_one_stands_in_the_result() -> None:
    made, _ = make(answering({"text/csv": {"schema": {"type": "string"}}}))
    page, _ = make(answering({"text/plain": {"schema": {"type": "string"}}}))

    assert made["limits"]["artifacts"] == 1
    assert {"type": "string"} in made["output_schema"]["properties"]["body"]["anyOf"]
    assert "artifacts" not in page["limits"]
    assert page["output_schema"]["properties"]["body"] == {"type": "string"}


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("media", "expected"),
    [
        ("image/svg+xml", True),
        ("application/vnd.ms-excel", True),
        ("application/vnd.github+json", False),
        ("application/vnd.shop+xml", False),
        ("text/csv", False),
        ("application/x-www-form-urlencoded", False),
    ],
)
def test_a_type_of_files_is_known_by_its_name(media: str, expected: bool) -> None:
    assert is_file_type(media) is expected


@pytest.mark.req("BRING-1")
def test_a_token_in_a_body_is_a_secret_that_the_gate_adds() -> None:
    """Plaid names its caller in headers, and a person's account by a token in the body."""
    schema = {
        "type": "object",
        "required": ["access_token"],
        "properties": {
            "access_token": {"type": "string", "description": "The access token of the item that data is asked for."},
            "client_id": {"type": "string", "description": "Your key. It may also be given in the header SHOP-ID."},
            "count": {"type": "integer"},
        },
    }

    def of(scheme: dict[str, Any], media: str = "application/json") -> dict[str, Any]:
        operation = {
            "operationId": "itemGet",
            "requestBody": {"required": True, "content": {media: {"schema": schema}}},
            "responses": {"200": {"description": ""}},
        }
        return service(
            {"/item/get": {"post": operation}},
            security=[{"key": []}],
            components={"securitySchemes": {"key": scheme}},
        )

    key = {"type": "apiKey", "in": "header", "name": "SHOP-ID"}
    made, notes = make(of(key), prefix="SHOP")
    as_bearer, _ = make(of({"type": "http", "scheme": "bearer"}), prefix="SHOP")

    assert list(made["input_schema"]["properties"]) == ["count"]
    assert operation_of(made)["credentials"][1] == {
        "secret": "SHOP_ACCESS_TOKEN",
        "in": "body",
        "name": "access_token",
        "scheme": "plain",
    }
    assert [each["name"] for each in made["secrets"]] == ["SHOP_KEY", "SHOP_ACCESS_TOKEN"]
    assert "required" not in made["secrets"][1]
    assert "'access_token' says who is asking: it is a secret" in " ".join(each.message for each in notes)
    assert [each["in"] for each in operation_of(as_bearer)["credentials"]] == ["header"]
    with pytest.raises(DocumentUnfit, match="within a form with files, where the gate adds nothing"):
        make(of(key, MULTIPART), prefix="SHOP")


@pytest.mark.req("BRING-1")
def test_a_secret_of_a_body_takes_no_other_argument_with_it() -> None:
    """What is said of a page speaks of tokens and secrets too, and names no other place of the credential."""
    texts = {
        "page": "The token of the next page.",
        "tokens": "How many tokens.",
        "id": "The shop's SHOP-ID-OLD, if any.",
    }
    properties = {"token": {"type": "string", "description": "An access token."}}
    properties |= {name: {"type": "string", "description": text} for name, text in texts.items()}
    schema = {"type": "object", "required": ["token"], "properties": properties}
    operation = {
        "operationId": "list",
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": ""}},
    }
    key = {"type": "apiKey", "in": "header", "name": "SHOP-ID"}

    made, _ = make(
        service(
            {"/list": {"post": operation}},
            security=[{"key": []}],
            components={"securitySchemes": {"key": key}},
        )
    )

    assert list(made["input_schema"]["properties"]) == ["page", "tokens", "id"]
    assert [each["name"] for each in operation_of(made)["credentials"]] == ["SHOP-ID", "token"]
