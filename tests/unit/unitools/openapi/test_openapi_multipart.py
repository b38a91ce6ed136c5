"""Bodies with files: is what a service reads of one what was meant, whatever names, types and contents hold?"""

from __future__ import annotations

import io
from email.parser import BytesParser
from typing import Any

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser
from hypothesis import given
from hypothesis import strategies as st

from unitools.openapi.argument_values import ArgumentRefused
from unitools.openapi.multipart import FormPart, write_multipart
from unitools.openapi.request_bodies import RequestFile
from unitools.openapi.requests import build_request

ID, OTHER = "art_01m8b1taarep0tj1gtp4fgsrfc", "fil_01m8b1taarep0tj1gtp4fgsrfc"
PHOTO = RequestFile("photo.png", "image/png", b"\x89PNG\r\n\x1a\n\x00\xff")
HOSTILE = (
    'a"; name="admin',
    "a\r\nContent-Type: text/html\r\n\r\n<script>",
    "a\nX-Other: 1",
    "a\\",
    'a\\"; filename="b',
    "\x00\x1f\x7f",
    "\x85\u2028\u2029",
    "--toolhub-",
    "späti 目录.png",
)


def read_parts(media_type: str, body: bytes) -> list[tuple[str, str | None, str, bytes]]:
    """``(name, file name, type, content)`` of each, as the standard library reads them."""
    message = BytesParser().parsebytes(b"Content-Type: " + media_type.encode() + b"\r\n\r\n" + body)
    assert message.is_multipart()
    assert not message.defects
    found = []
    payload: Any = message.get_payload()
    for part in payload:
        assert not part.defects
        name = str(part.get_param("name", header="content-disposition"))
        assert set(map(str.lower, part.keys())) <= {"content-disposition", "content-type"}
        kind = part.get("content-type", "")
        found.append((name, part.get_filename(), str(kind), part.get_payload(decode=True)))
    return found


def read_by_django(media_type: str, body: bytes) -> tuple[Any, Any]:
    handler = MemoryFileUploadHandler()
    meta = {"CONTENT_TYPE": media_type, "CONTENT_LENGTH": str(len(body))}
    return MultiPartParser(meta, io.BytesIO(body), [handler], "utf-8").parse()


def send(arguments: list[dict[str, Any]], values: dict[str, Any], files: dict[str, RequestFile]) -> tuple[str, bytes]:
    operation = {
        "method": "POST",
        "path": "/photos",
        "arguments": [{"in": "body", "name": each["argument"]} | each for each in arguments],
        "body": {"media_type": "multipart/form-data"},
    }
    request = build_request(operation, values, files=files)
    assert request.body is not None
    return dict(request.headers)["Content-Type"], request.body


@pytest.mark.req("BRING-1")
def test_texts_json_and_files_are_parts_of_their_own() -> None:
    arguments: list[dict[str, Any]] = [
        {"argument": "photo", "file": True},
        {"argument": "more", "file": True},
        {"argument": "about"},
        {"argument": "list", "as_json": True},
        {"argument": "tags"},
        {"argument": "count"},
        {"argument": "none"},
        {"argument": "note", "media_types": ["text/markdown"]},
    ]
    values = {
        "photo": ID,
        "more": [ID, OTHER],
        "about": {"a": [1, "ä"]},
        "list": [1, {"b": 2}],
        "tags": ["x", "y"],
        "count": 3,
        "none": None,
        "note": "# hej",
    }
    sheet = RequestFile("june.csv", "text/csv", b"a,b\r\n1,2\r\n")

    media_type, body = send(arguments, values, {ID: PHOTO, OTHER: sheet})

    fields, files = read_by_django(media_type, body)
    assert dict(fields.lists()) == {
        "about": ['{"a":[1,"ä"]}'],
        "list": ['[1,{"b":2}]'],
        "tags": ["x", "y"],
        "count": ["3"],
        "note": ["# hej"],
    }
    assert isinstance(fields, QueryDict)
    assert {name: [(each.name, each.content_type, each.read()) for each in found] for name, found in files.lists()} == {
        "photo": [("photo.png", "image/png", PHOTO.content)],
        "more": [("photo.png", "image/png", PHOTO.content), ("june.csv", "text/csv", sheet.content)],
    }
    assert [(name, kind) for name, _, kind, _ in read_parts(media_type, body)] == [
        ("photo", "image/png"),
        ("more", "image/png"),
        ("more", "text/csv"),
        ("about", "application/json"),
        ("list", "application/json"),
        ("tags", ""),
        ("tags", ""),
        ("count", ""),
        ("note", "text/markdown"),
    ]


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_part_or_a_file_leaves_its_quotes(name: str) -> None:
    media_type, body = write_multipart([FormPart(name, b"content", "image/png", name), FormPart("after", b"x")])

    head = body.partition(b"\r\n\r\n")[0]
    assert head.count(b"\r\n") == 2, head  # the boundary, the disposition, the type
    assert head.count(b'"') == 4, head
    assert b"\\" not in head
    found = read_parts(media_type, body)
    assert [(kind, content) for _, _, kind, content in found] == [("image/png", b"content"), ("", b"x")]
    fields, files = read_by_django(media_type, body)
    assert (len(fields), len(files)) == (1, 1)


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_a_type_that_is_none_is_not_written_into_a_head() -> None:
    _, body = write_multipart([FormPart("a", b"", "image/png\r\nX-Other: 1", "b")])

    assert b"X-Other" not in body
    assert b"Content-Type: application/octet-stream\r\n" in body


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_what_looks_like_another_part_stays_within_its_own() -> None:
    """Its boundary is known to nobody before the content is: also not to who has written the content for an earlier body."""
    first_type, first = write_multipart([FormPart("a", b"plain")])
    boundary = first_type.partition("boundary=")[2]
    forged = (
        b"x\r\n--"
        + boundary.encode()
        + b'\r\nContent-Disposition: form-data; name="admin"\r\nContent-Length: 5\r\n\r\nyes'
    )

    media_type, body = write_multipart(
        [FormPart("a", forged + first), FormPart("b", b"Content-Length: 999999\r\n\r\n")]
    )

    assert media_type.partition("boundary=")[2] != boundary
    assert [(name, content) for name, _, _, content in read_parts(media_type, body)] == [
        ("a", forged + first),
        ("b", b"Content-Length: 999999\r\n\r\n"),
    ]
    fields, files = read_by_django(media_type, body)
    assert sorted(fields) == ["a", "b"]
    assert not files


@given(
    st.lists(
        st.tuples(
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
            st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
            st.binary(max_size=60) | st.sampled_from([b"\r\n--", b"--toolhub-\r\n", b"\r\n\r\n"]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_the_parts_hold_they_are_read_as_they_were_written(parts: list[tuple[str, str | None, bytes]]) -> None:
    written = [FormPart(name, content, "application/x-any", filename) for name, filename, content in parts]

    media_type, body = write_multipart(written)

    line = b"--" + media_type.partition("boundary=")[2].encode()
    pieces = body.split(line)
    assert len(pieces) == len(parts) + 2
    assert pieces[-1] == b"--\r\n"
    assert [each.partition(b"\r\n\r\n")[2][:-2] for each in pieces[1:-1]] == [content for _, _, content in parts]
    assert all(each.partition(b"\r\n\r\n")[0].count(b"\r\n") == 2 for each in pieces[1:-1])
    assert write_multipart(written) == (media_type, body)


@pytest.mark.req("BRING-1")
def test_a_file_is_the_body_as_what_it_is() -> None:
    operation = {
        "method": "PUT",
        "path": "/photo",
        "body": {"media_type": "image/*", "argument": "body", "file": True},
    }

    request = build_request(operation, {"body": ID}, files={ID: PHOTO})

    assert request.body == PHOTO.content
    assert dict(request.headers)["Content-Type"] == "image/png"
    assert build_request(operation | {"body": operation["body"]}, {}).body is None


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("own", "wanted", "sent"),
    [
        ("image/png", ["image/jpeg", "image/png"], "image/png"),
        ("image/png", ["image/*"], "image/png"),
        ("image/png", ["application/octet-stream"], "application/octet-stream"),
        ("application/octet-stream", ["image/heic"], "image/heic"),
        ("text/plain", ["text/csv"], "text/csv"),
        ("image/gif", ["image/png"], None),
        ("application/octet-stream", ["image/*"], None),
        ("text/plain", ["application/pdf"], None),
        ("text/html", ["image/*", "application/pdf"], None),
    ],
)
def test_a_file_that_the_service_does_not_take_is_refused_before_anything_is_sent(
    own: str, wanted: list[str], sent: str | None
) -> None:
    file = RequestFile("a", own, b"x")
    body = {"media_type": wanted[0], "media_types": wanted, "argument": "body", "file": True}
    operation = {"method": "POST", "path": "/p", "body": body}

    if sent is None:
        with pytest.raises(ArgumentRefused, match=f"The file is {own}; the service takes "):
            build_request(operation, {"body": ID}, files={ID: file})
        return
    request = build_request(operation, {"body": ID}, files={ID: file})
    assert dict(request.headers)["Content-Type"] == sent


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("value", [OTHER, "photo.png", 7, None, {"id": ID}])
def test_an_id_that_the_hub_gave_no_file_for_is_refused(value: Any) -> None:
    operation = {
        "method": "POST",
        "path": "/p",
        "body": {"media_type": "application/pdf", "argument": "body", "file": True},
    }

    with pytest.raises(ArgumentRefused, match="It names no file of this call"):
        build_request(operation, {"body": value}, files={ID: PHOTO})


@pytest.mark.req("BRING-1")
def test_a_text_is_sent_as_it_is() -> None:
    operation = {"method": "POST", "path": "/p", "body": {"media_type": "text/csv", "argument": "body"}}

    request = build_request(operation, {"body": "a,ä\r\n"})

    assert (request.body, dict(request.headers)["Content-Type"]) == ("a,ä\r\n".encode(), "text/csv; charset=utf-8")
    with pytest.raises(ArgumentRefused, match="is one text"):
        build_request(operation, {"body": {"a": 1}})
    with pytest.raises(ArgumentRefused, match="half of a character"):
        build_request(operation, {"body": "\ud800"})


@pytest.mark.req("BRING-1")
def test_json_is_wanted_more_than_a_file() -> None:
    operation = {"method": "GET", "path": "/p", "accept": ["application/json", "text/csv", "application/pdf"]}

    assert dict(build_request(operation, {}).headers)["Accept"] == "application/json, text/csv, application/pdf;q=0.5"
    only = operation | {"accept": ["application/pdf", "image/png"]}
    assert dict(build_request(only, {}).headers)["Accept"] == "application/pdf, image/png"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("values", [{}, {"photos": []}, {"title": None}])
def test_a_form_without_a_part_is_left_out(values: dict[str, Any]) -> None:
    """A body of no part is none that a service reads."""
    operation = {
        "method": "POST",
        "path": "/items",
        "body": {"media_type": "multipart/form-data"},
        "arguments": [
            {"argument": "photos", "in": "body", "name": "photos", "file": True},
            {"argument": "title", "in": "body", "name": "title"},
        ],
    }

    asked = build_request(operation, values)

    assert asked.body is None
    assert "Content-Type" not in dict(asked.headers)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("values", [{}, {"photos": []}, {"title": None}])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_form_that_the_service_wants_is_refused_without_a_part(method: str, values: dict[str, Any]) -> None:
    operation = {
        "method": method,
        "path": "/items",
        "body": {"media_type": "multipart/form-data", "required": True},
        "arguments": [
            {"argument": "photos", "in": "body", "name": "photos", "file": True},
            {"argument": "title", "in": "body", "name": "title"},
        ],
    }

    with pytest.raises(ArgumentRefused, match="wants a form with at least one part"):
        build_request(operation, values)
    assert build_request(operation, {"title": ""}).body is not None


HEADERS: list[dict[str, Any]] = [
    {"argument": "photos", "file": True},
    {"argument": "rate", "name": "photos", "header": "X-Rate"},
    {"argument": "tags", "name": "photos", "header": "X-Tags"},
]


@pytest.mark.req("BRING-1")
def test_headers_of_a_part_stand_in_its_head() -> None:
    values = {"photos": [ID, OTHER], "rate": 3, "tags": ["a", "b"]}

    _, body = send(HEADERS, values, {ID: PHOTO, OTHER: PHOTO})

    heads = [each.partition(b"\r\n\r\n")[0].split(b"\r\n") for each in body.split(b"--toolhub-")[1:-1]]
    assert [head[3:] for head in heads] == [[b"X-Rate: 3", b"X-Tags: a,b"]] * 2
    _, without = send(HEADERS, {"photos": [ID], "tags": None}, {ID: PHOTO})
    assert b"X-" not in without


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("value", ["a\r\nX-Other: 1", "a\r\n\r\n<script>", "a\nb", " a", "a\x00", "ä", "\u2028"])
def test_a_header_of_a_part_stays_on_its_line(value: str) -> None:
    with pytest.raises(ArgumentRefused, match="on one line"):
        send(HEADERS, {"photos": [ID], "rate": value}, {ID: PHOTO})


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_the_name_of_a_header_of_a_part_ends_no_line() -> None:
    named = [HEADERS[0], HEADERS[1] | {"header": "X-Rate\n"}]

    with pytest.raises(ArgumentRefused, match="rate: No header of a part can be called"):
        send(named, {"photos": [ID], "rate": 3}, {ID: PHOTO})


@pytest.mark.req("BRING-1")
def test_a_header_of_a_part_that_is_not_sent_is_refused() -> None:
    with pytest.raises(ArgumentRefused, match="rate: It is said of the part photos, which is not sent"):
        send(HEADERS, {"photos": [], "rate": 3}, {ID: PHOTO})


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(("media", "body"), [("application/json", b"{}"), ("application/x-www-form-urlencoded", b"")])
def test_a_body_of_a_credential_alone_says_what_it_is(media: str, body: bytes) -> None:
    """The gate adds the credential, and says nothing of the type of what it adds to."""
    operation = {
        "method": "DELETE",
        "path": "/items",
        "body": {"media_type": media},
        "credentials": [{"secret": "TOKEN", "in": "body", "name": "token", "scheme": "plain"}],
    }

    asked = build_request(operation, {})

    assert (dict(asked.headers)["Content-Type"], asked.body) == (media, body)
    assert build_request(operation | {"credentials": []}, {}).body is None
