"""OpenAPI files: does an operation that takes or answers files become a manifest in which an id stands for each of them?"""

from __future__ import annotations

from typing import Any

import pytest

from kernel.ids import id_pattern
from tests.support.openapi_documents import (
    BYTES,
    MULTIPART,
    form,
    make,
    of_parameters,
    operation_of,
    sending,
    service,
)
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.files import FILE_ID, is_file_type


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
