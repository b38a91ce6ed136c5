"""Arguments of operations: is each where the document has it, under a name of its own, and none of them who is asking?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openapi_documents import (
    OK,
    make,
    notes_of,
    of_parameters,
    of_schemas,
    parameter,
    service,
)
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.requests import build_request


@pytest.mark.req("BRING-1")
def test_a_name_in_two_places_gets_its_place_in_all_of_them() -> None:
    said = of_parameters(
        parameter("id", "path"), parameter("id"), parameter("X-Id", "header"), parameter("other"), path="/items/{id}", method="post",
        requestBody={"content": {"application/json": {"schema": {
            "type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "more": {}},
        }}}},
    )  # fmt: skip

    made, _ = make(said)

    assert list(made["input_schema"]["properties"]) == ["id_path", "id_query", "X-Id", "other", "id_body", "more"]
    assert made["input_schema"]["required"] == ["id_path", "id_body"]
    assert made["input_schema"]["additionalProperties"] is False
    found = build_request(made["implementation"]["operation"], {"id_path": "1", "id_query": "2", "id_body": 3})
    assert (found.target, found.body) == ("/items/1?id=2", b'{"id":3}')


@pytest.mark.req("BRING-1")
def test_names_that_models_cannot_write_are_written_otherwise() -> None:
    made, _ = make(
        of_parameters(
            parameter("filter[status]"),
            parameter("expand[]"),
            parameter("expand"),
            parameter("$top"),
            parameter("n" * 100),
        )
    )

    names = list(made["input_schema"]["properties"])
    assert names[:4] == ["filter_status", "expand", "expand_2", "top"]
    assert len(names[4]) <= 64
    assert [each["name"] for each in made["implementation"]["operation"]["arguments"]][:2] == [
        "filter[status]",
        "expand[]",
    ]


@pytest.mark.req("BRING-1")
def test_a_path_says_what_is_shared_and_the_operation_what_is_its_own() -> None:
    said = service({"/items/{id}": {
        "parameters": [parameter("id", "path"), parameter("page", description="Of the path.")],
        "get": {"parameters": [parameter("page", description="Of the operation.")], "responses": OK},
    }})  # fmt: skip

    made, _ = make(said)

    assert made["input_schema"]["properties"]["page"]["description"] == "Of the operation."
    assert made["input_schema"]["required"] == ["id"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("path", ["/a/../b", "/a/./b", "//a", "/a?x=1", "/a/%2e%2e", "/a b", "/a\\b"])
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(DocumentUnfit, match="way out"):
        make(of_parameters(path=path))


@pytest.mark.req("BRING-1")
def test_the_fragment_of_a_path_is_not_sent() -> None:
    said = of_parameters(path="/files#add_link", method="put")

    assert make(said)[0]["implementation"]["operation"]["path"] == "/files"
    assert "fragment" in notes_of(said)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(("path", "places"), [("/a/{x}", []), ("/a", ["x"]), ("/a/{x}/{x}", ["x"])])
def test_a_path_and_its_parameters_agree(path: str, places: list[str]) -> None:
    with pytest.raises(DocumentUnfit, match="disagree"):
        make(of_parameters(*(parameter(name, "path") for name in places), path=path))


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Accept",
        "Content-Type",
        "X-Forwarded-For",
        "X-Original-Method",
        "True-Client-IP",
    ],
)
def test_a_header_of_the_gates_is_no_argument(name: str) -> None:
    made, notes = make(of_parameters(parameter(name, "header", required=True)))

    assert made["input_schema"]["properties"] == {}
    assert f"{name!r} is the gate's to say" in notes[0].message


@pytest.mark.req("BRING-1")
def test_a_header_that_is_two_lines_is_refused() -> None:
    with pytest.raises(DocumentUnfit, match="can be called"):
        make(of_parameters(parameter("X-A\r\nHost: b", "header")))


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("place", ["query", "header"])
def test_a_token_among_the_parameters_is_a_secret_and_no_argument(place: str) -> None:
    token = parameter("token", place, required=True, description="Authentication token. Requires scope: `chat:write`")
    oauth = {"oauth": {"type": "oauth2", "flows": {}}}
    plain, secured = of_parameters(token), of_parameters(token, security=[{"oauth": ["chat:write"]}])

    made, _ = make(plain, prefix="SLACK")
    with_scheme, _ = make(secured | {"components": {"securitySchemes": oauth}}, prefix="SLACK")

    for each in (made, with_scheme):
        assert each["input_schema"]["properties"] == {}
    assert made["implementation"]["operation"]["credentials"] == [
        {"secret": "SLACK_TOKEN", "in": place, "name": "token", "scheme": "plain"}
    ]
    assert with_scheme["implementation"]["operation"]["credentials"] == [
        {"secret": "SLACK_OAUTH", "in": "header", "name": "Authorization", "scheme": "bearer"}
    ]


@pytest.mark.req("BRING-1")
def test_a_token_in_a_form_is_no_argument_where_the_gate_says_who_is_asking() -> None:
    form = {"type": "object", "required": ["token", "text"], "properties": {
        "token": {"type": "string", "description": "Authentication token. Requires scope."},
        "text": {"type": "string"}, "access_token": {"type": "string"}, "password": {"type": "string"},
    }}  # fmt: skip
    said = of_parameters(
        method="post",
        security=[{"key": []}],
        requestBody={"content": {"application/x-www-form-urlencoded": {"schema": form}}},
    )
    key = {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}

    assert list(make(said | {"components": key})[0]["input_schema"]["properties"]) == ["text", "password"]
    del said["paths"]["/items"]["post"]["security"]
    assert list(make(said)[0]["input_schema"]["properties"]) == ["token", "text", "access_token", "password"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("wrap", ["plain", "beside", "all"])
def test_a_credential_in_a_body_is_no_argument_where_only_a_reference_says_what_it_is(wrap: str) -> None:
    def text(said: str) -> dict[str, Any]:
        return {"type": "string", "description": said}

    schemas = {
        "Id": text("Your `client_id`, in the `X-Client` header or here."),
        "Secret": {"$ref": "#/components/schemas/Inner"},
        "Inner": text("Your API `secret`, in the `X-Secret` header or here."),
        "Token": text("The access token associated with the item."),
        "Count": text("How many."),
    }

    def refer(name: str) -> dict[str, Any]:
        said: dict[str, Any] = {"$ref": f"#/components/schemas/{name}"}
        wrapped: dict[str, dict[str, Any]] = {
            "plain": said,
            "beside": {**said, "description": "Which one."},
            "all": {"allOf": [said]},
        }
        return wrapped[wrap]

    body = {"type": "object", "required": ["access_token", "count"], "properties": {
        "client_id": refer("Id"), "secret": refer("Secret"), "access_token": refer("Token"), "count": refer("Count"),
    }}  # fmt: skip
    said = of_schemas(schemas, body=body)
    said["components"]["securitySchemes"] = {
        name: {"type": "apiKey", "in": "header", "name": f"X-{name}"} for name in ("Client", "Secret")
    }
    said["security"] = [{"Client": [], "Secret": []}]

    assert list(make(said)[0]["input_schema"]["properties"]) == ["count"]


@pytest.mark.req("BRING-1")
def test_plain_objects_that_all_hold_are_one_object() -> None:
    schemas = {
        "base": {
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
        },
        "more": {
            "allOf": [
                {"$ref": "#/components/schemas/base"},
                {"type": "object", "required": ["name"], "properties": {"size": {"type": "integer"}}},
            ]
        },
    }

    made, _ = make(of_schemas(schemas, body={"$ref": "#/components/schemas/more"}))

    assert list(made["input_schema"]["properties"]) == ["name", "size"]
    assert made["input_schema"]["required"] == ["name"]
    assert "argument" not in made["implementation"]["operation"]["body"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "body",
    [
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]},
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
        {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}}}]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
        {},
    ],
)
def test_any_other_body_is_one_argument(body: dict[str, Any]) -> None:
    made, _ = make(of_schemas({}, body=body))

    assert list(made["input_schema"]["properties"]) == ["body"]
    assert made["implementation"]["operation"]["body"] == {"media_type": "application/json", "argument": "body"}
    assert made["input_schema"]["required"] == ["body"]
    assert not {"oneOf", "anyOf", "allOf"} & made["input_schema"].keys()


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "media", ["application/xml", "text/plain", "application/x-protobuf", "multipart/mixed", "odd type"]
)
def test_a_body_that_nobody_writes_is_refused_with_a_remedy(media: str) -> None:
    content = {media: {"schema": {"type": "object"}}}

    with pytest.raises(DocumentUnfit, match="is not written") as caught:
        make(of_parameters(method="post", requestBody={"required": True, "content": content}))

    assert caught.value.pointer == "/paths/~1items/post/requestBody"
    assert caught.value.remedy == "Leave the operation out, or write a tool for it."
    assert "not sent; it may be left out" in notes_of(
        of_parameters(method="post", requestBody={"required": False, "content": content})
    )
    both = {media: {}, "application/json": {"schema": {"type": "object", "properties": {"a": {}}}}}
    made, _ = make(of_parameters(method="post", requestBody={"content": both}))
    assert made["implementation"]["operation"]["body"] == {"media_type": "application/json"}


@pytest.mark.req("BRING-1")
def test_a_body_of_a_get_is_left_out_unless_it_is_required() -> None:
    body = {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {}}}}}

    assert "body" not in make(of_parameters(requestBody=body))[0]["implementation"]["operation"]
    with pytest.raises(DocumentUnfit, match="GET has a body"):
        make(of_parameters(requestBody=body | {"required": True}))


@pytest.mark.req("BRING-1")
def test_a_form_is_written_as_its_document_says() -> None:
    schema = {"type": "object", "properties": {
        "items": {"type": "array", "items": {"type": "object"}}, "metadata": {"type": "object"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "plain": {"type": "object"},
    }}  # fmt: skip
    deep = {"style": "deepObject", "explode": True}
    media = {
        "schema": schema,
        "encoding": {"items": deep, "metadata": deep, "tags": {"style": "form", "explode": False}},
    }

    made, _ = make(of_parameters(method="post", requestBody={"content": {"application/x-www-form-urlencoded": media}}))

    found = build_request(
        made["implementation"]["operation"],
        {"items": [{"a": 1}], "metadata": {"k": "v"}, "tags": ["x", "y"], "plain": {"b": 2}},
    )
    assert found.body == b"items%5B0%5D%5Ba%5D=1&metadata%5Bk%5D=v&tags=x,y&plain=%7B%22b%22%3A2%7D"


@pytest.mark.req("BRING-1")
def test_what_stands_beside_a_reference_counts_in_a_body_too() -> None:
    schemas = {"a": {"type": "object", "properties": {"z": {"type": "string"}}}}
    body = {"$ref": "#/components/schemas/a", "required": ["z"], "properties": {"y": {"type": "string"}}}

    newer, _ = make(of_schemas(schemas, body=body, openapi="3.1.0"))
    older, _ = make(of_schemas(schemas, body=body))

    assert (list(newer["input_schema"]["properties"]), newer["input_schema"]["required"]) == (["z", "y"], ["z"])
    assert list(older["input_schema"]["properties"]) == ["z"]


@pytest.mark.req("BRING-1")
def test_what_is_sent_or_answered_otherwise_than_the_document_says_is_told() -> None:
    answers = {"200": OK["200"] | {"headers": {"X-Total": {}, "Link": {}, "ETag": {}}}}
    said = of_parameters(parameter(allowReserved=True), responses=answers)

    _, notes = make(said)

    assert [(each.pointer.rpartition("/")[2], each.message) for each in notes] == [
        ("allowReserved", "Signs such as / and ? are sent escaped, as in every value."),
        ("headers", "Headers of the answer are not returned: X-Total, ETag."),
    ]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("place", "name", "is_token"),
    [
        ("header", "PRIVATE-TOKEN", True),
        ("header", "X-Shop-Access-Token", True),
        ("header", "X-Session-Token", True),
        ("query", "access_token", True),
        ("query", "apikey", True),
        ("header", "X-Page-Token", False),
        ("header", "X-CSRF-Token", False),
        ("header", "X-Idempotency-Key", False),
        ("query", "page_token", False),
        ("query", "token", False),
        ("query", "key", False),
    ],
)
def test_a_token_among_the_parameters_is_known_by_its_name(place: str, name: str, is_token: bool) -> None:
    made, _ = make(of_parameters(parameter(name, place)))

    operation = made["implementation"]["operation"]
    assert [each["name"] for each in operation.get("credentials", [])] == [name] * is_token
    assert [each["name"] for each in operation.get("arguments", [])] == [name] * (not is_token)
