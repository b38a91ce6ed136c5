"""OpenAPI documents: is a file of somebody else's read up to its limits, and nothing but the file?"""

from __future__ import annotations

import gc
import json
import weakref
from contextlib import suppress
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote

import pytest

from tests.support.openapi_documents import OK, SERVER, make, of_parameters, read, service
from unitools.openapi import documents
from unitools.openapi.documents import (
    MAX_DOCUMENT_BYTES,
    MAX_YAML_EVENTS,
    METHODS,
    DocumentUnfit,
    OpenApiDocument,
    read_document,
)

YAML = b"""\
openapi: 3.0.3
info: {title: Shop, version: 1.10, x-day: 2020-01-01}
servers: [{url: https://api.example.org}]
paths:
  /on:
    get:
      operationId: yes
      parameters:
        - {name: on, in: query, schema: {type: string, enum: [on, off, 2020-01-01, 12:30], default: no}}
      responses: {200: {description: ok}}
"""


@pytest.mark.req("BRING-1")
def test_yaml_is_read_as_json_means_it() -> None:
    document = read_document(YAML)

    assert (document.revision, list(document.operations)) == ("3.0", ["yes"])
    parameter = document.operations["yes"].said["parameters"][0]
    assert (parameter["name"], parameter["schema"]["default"]) == ("on", "no")
    assert parameter["schema"]["enum"] == ["on", "off", "2020-01-01", "12:30"]
    assert list(document.operations["yes"].said["responses"]) == ["200"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: &x [1]\nb: [*x, *x]\n", "alias"),
        (b"a: !!python/object/apply:os.system [ls]\n", "tag"),
        (b"a: 1\na: 2\n", "twice"),
        (b"? [a]\n: 1\n", "name is no text"),
        (b"a: " + b"[" * 200 + b"]" * 200, "nested more than"),
        (b"a: [\n", "line 2"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": ' * 200 + b"1" + b"}" * 200, "nested more than"),
        (b'{"openapi": NaN}', "NaN"),
        (b"[]", "no object"),
        (b"{}", "no OpenAPI document"),
        (b'{"openapi": "4.0.0"}', "no OpenAPI document"),
        (b'{"swagger": "1.2"}', "no OpenAPI document"),
        (b'{"openapi": "3.0.0", "paths": []}', "paths is no object"),
    ],
)
def test_a_file_that_is_no_document_is_refused_with_a_remedy(data: bytes, message: str) -> None:
    with pytest.raises(DocumentUnfit, match=message) as caught:
        read_document(data)
    assert caught.value.remedy


@pytest.mark.req("BRING-1")
def test_a_file_that_is_too_large_is_not_even_parsed() -> None:
    with pytest.raises(DocumentUnfit, match="at most"):
        read_document(b"{" * (MAX_DOCUMENT_BYTES + 1))


@pytest.mark.req("BRING-1")
def test_yaml_holds_no_more_than_a_process_bears_and_json_of_the_same_is_read() -> None:
    many = "1," * MAX_YAML_EVENTS
    with pytest.raises(DocumentUnfit, match="more than 500,000 names") as caught:
        read_document(f"openapi: 3.0.3\npaths: {{}}\nx-a: [{many}]".encode())

    assert "Convert the file to JSON" in caught.value.remedy
    assert read_document(f'{{"openapi": "3.0.3", "paths": {{}}, "x-a": [{many}1]}}'.encode()).operations == {}


@pytest.mark.req("BRING-1")
def test_a_document_of_twenty_thousand_operations_is_listed() -> None:
    document = read(service({f"/p{number}": {"get": {"responses": OK}} for number in range(20_000)}))

    assert len(document.operations) == 20_000
    assert document.select(["GET /p19999"])[0].path == "/p19999"


@pytest.mark.req("BRING-1")
def test_a_document_of_more_paths_is_refused_before_any_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_read_path_item", None)

    with pytest.raises(DocumentUnfit, match="has 25,001 paths; at most 25,000") as caught:
        read(service({f"/p{number}": {"get": {"responses": OK}} for number in range(25_001)}))

    assert (caught.value.pointer, "several documents" in caught.value.remedy) == ("/paths", True)


@pytest.mark.req("BRING-1")
def test_what_many_paths_refer_to_is_looked_for_once_also_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, resolve, resolved = Mock(wraps=unquote), OpenApiDocument.resolve, list[str]()

    def count(document: OpenApiDocument, value: Any, at: str) -> Any:
        resolved.append(at)
        return resolve(document, value, at)

    monkeypatch.setattr(documents, "unquote", walk)
    monkeypatch.setattr(OpenApiDocument, "resolve", count)
    item = {method: {"$ref": f"#/{'%61' * 1_000}/{method}"} for method in METHODS}
    paths: dict[str, Any] = {f"/{number}": {"$ref": "#/x"} for number in range(2_000)}

    document = read(service({**paths, "/a": {"get": {"responses": OK}}}, x=item))

    assert (walk.call_count, len(resolved)) == (7, 1 + (1 + 6) + (1 + 6))  # paths, x with its methods, /a with its own
    assert (document.unread.count, list(document.unread.first)[-1]) == (12_000, "PATCH /0")
    assert list(document.operations) == ["GET /a"]


@pytest.mark.req("BRING-1")
def test_paths_that_name_one_reference_to_nothing_are_told_with_their_own_places() -> None:
    document = read(service({"/a": {"$ref": "#/x"}, "/b": {"$ref": "#/x"}, "/c": {"get": {"responses": OK}}}))

    assert [each.pointer for each in document.unread.first.values()] == ["/paths/~1a", "/paths/~1b"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(("count", "more"), [(5, []), (6, ["6 paths and operations in all"])])
def test_of_many_unread_parts_the_first_are_named_and_all_are_counted(count: int, more: list[str]) -> None:
    unread = {f"/{number}": {"$ref": "other.yaml"} for number in range(count)}

    told = read(service({**unread, "/a": {"get": {"responses": OK}}})).unread.list_named()

    assert [name for name, _ in told] == [*(f"/{number}" for number in range(5)), *more]


@pytest.mark.req("BRING-1")
def test_operations_are_known_by_their_id_or_by_method_and_path() -> None:
    same = {"operationId": "same", "responses": OK}
    document = read(
        service(
            {"/a": {"get": same, "x-y": 1, "options": {}}, "/b": {"get": same, "delete": {"tags": ["t"]}}, "x-c": {}}
        )
    )

    assert list(document.operations) == ["GET /a", "GET /b", "DELETE /b"]
    assert [each.id for each in document.select(["GET /a"], ["t"])] == ["GET /a", "DELETE /b"]
    for names, tags in (["same"], []), ([], ["none"]):
        with pytest.raises(DocumentUnfit, match="--list"):
            document.select(names, tags)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "reference",
    ["other.yaml#/a", "https://example.org/a.json", "file:///etc/passwd", "//example.org/a", "other.json", "./x"],
)
def test_a_reference_that_leaves_the_file_is_refused_with_pointer_and_remedy(reference: str) -> None:
    places: list[dict[str, Any]] = [
        of_parameters({"$ref": reference}),
        of_parameters({"name": "a", "in": "query", "schema": {"$ref": reference}}),
        of_parameters(requestBody={"$ref": reference}, method="post"),
        of_parameters(responses={"200": {"$ref": reference}}),
        of_parameters(responses={"200": {"content": {"application/json": {"schema": {"items": {"$ref": reference}}}}}}),
    ]
    for said in places:
        with pytest.raises(DocumentUnfit, match="another file") as caught:
            make(said)
        assert caught.value.pointer.startswith("/paths/~1items/")
        assert "Bundle" in caught.value.remedy


@pytest.mark.req("BRING-1")
def test_references_are_followed_by_their_escapes_and_to_an_end() -> None:
    schemas = {
        "a/b~c d": {"type": "integer"},
        "loop": {"$ref": "#/components/schemas/pool"},
        "pool": {"$ref": "#/components/schemas/loop"},
    }
    said = of_parameters({"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/a~1b~0c%20d"}})

    made, _ = make(said | {"components": {"schemas": schemas}})

    assert made["input_schema"]["$defs"] == {"a_b_c_d": {"type": "integer"}}
    document = read(said | {"components": {"schemas": schemas}})
    with pytest.raises(DocumentUnfit, match="without an end"):
        document.resolve({"$ref": "#/components/schemas/loop"}, "")
    for reference in ("#/components/none", "#anchor", "#/paths/0", "#/servers/9"):
        with pytest.raises(DocumentUnfit, match="names nothing"):
            document.find(reference, "/x")
    assert document.find("#/servers/0/url", "") == SERVER


@pytest.mark.req("BRING-1")
def test_a_path_may_be_a_reference_to_another() -> None:
    said = service(
        {
            "/a": {"get": {"operationId": "one", "responses": OK}},
            "/b": {"$ref": "#/paths/~1a"},
            "/c": {"$ref": "x.yaml"},
        }
    )

    assert {each.path for each in read(said).operations.values()} == {"/a", "/b"}
    assert read(said).unread.first["/c"].pointer == "/paths/~1c"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("paths", "pointer"),
    [
        ({"/a": {"$ref": "paths/a.yaml"}, "/b": {"$ref": "paths/b.yaml"}}, "/paths/~1a"),
        ({"/a": {"get": {"$ref": "https://example.com/a.yaml"}}}, "/paths/~1a/get"),
        ({"$ref": "paths.yaml"}, "/paths"),
    ],
    ids=["paths", "operation", "all"],
)
def test_a_document_all_of_which_lies_in_other_files_says_so(paths: dict[str, Any], pointer: str) -> None:
    with pytest.raises(DocumentUnfit, match="leads to another file") as caught:
        read(service(paths))

    assert caught.value.pointer == pointer
    assert "bundle" in caught.value.remedy


@pytest.mark.req("BRING-1")
def test_a_document_with_an_unread_part_goes_with_its_last_reader() -> None:
    class Root(dict[str, Any]):
        """That one can hold weakly."""

    gc.collect()
    gc.disable()
    try:
        root = Root(service({"/a": {"get": {"responses": OK}}, "/b": {"$ref": "b.yaml"}, "/c": {"get": {"$ref": "c"}}}))
        document = OpenApiDocument(root, "3.0", "3.0.3", "", {})
        documents._list_operations(document)
        assert document.unread.count == 2
        held = weakref.ref(root)
        del root, document
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.req("BRING-1")
def test_an_operation_may_be_a_reference_to_another() -> None:
    one = {"operationId": "one", "parameters": [{"name": "q", "in": "query"}], "responses": OK}
    said = service({"/a": {"get": {"$ref": "#/x-operations/one"}}}) | {"x-operations": {"one": one}}

    made, _ = make(said)

    assert "q" in made["input_schema"]["properties"]


@pytest.mark.req("BRING-1")
def test_no_operation_takes_the_place_of_another_by_its_name() -> None:
    twice = {"operationId": "twice", "responses": OK}
    said = service({"/a": {"get": twice}, "/b": {"get": twice}, "/c": {"get": {"operationId": "GET /a"}}})

    found = read(said).operations

    assert {id: each.path for id, each in found.items()} == {"GET /a": "/a", "GET /b": "/b", "GET /c": "/c"}


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "said",
    [
        of_parameters({"name": "a", "in": ["query"]}),
        of_parameters({"name": "a", "in": {}}),
        of_parameters() | {"components": []},
        service(
            {"/a": {"get": {"parameters": [{"name": "a", "in": "query", "type": "array", "collectionFormat": []}]}}}
        )
        | {"swagger": "2.0", "openapi": None},
    ],
)
def test_what_stands_where_something_else_belongs_breaks_no_reader(said: dict[str, Any]) -> None:
    with suppress(DocumentUnfit):
        make({name: each for name, each in said.items() if each is not None})


@pytest.mark.req("BRING-1")
def test_a_number_without_end_is_refused_in_yaml_as_in_json() -> None:
    with pytest.raises(DocumentUnfit, match="number is too large"):
        read_document(b"openapi: 3.0.3\nx: 1e999\npaths: {}\n")


@pytest.mark.req("BRING-1")
def test_its_digest_is_of_its_bytes() -> None:
    said = service({})

    assert read_document(json.dumps(said).encode()).digest != read_document(json.dumps(said, indent=1).encode()).digest
