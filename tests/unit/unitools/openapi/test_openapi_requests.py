"""OpenAPI requests: does every value stay in its place, and is an answer read up to its limits and no further?"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.openapi.argument_values import ArgumentRefused
from unitools.openapi.requests import build_request
from unitools.openapi.service_answers import AnswerUnreadable, read_answer

FORM = {"media_type": "application/x-www-form-urlencoded"}
JSON = {"media_type": "application/json"}
LIST, OBJECT = ["blue", "a,b"], {"R": 100, "G": "x y"}


def operation(*arguments: dict[str, Any], path: str = "/items", method: str = "GET", **more: Any) -> dict[str, Any]:
    return {"server": "https://api.example.org/v1", "method": method, "path": path, "arguments": list(arguments)} | more


def at(place: str, name: str = "c", **style: Any) -> dict[str, Any]:
    return {"argument": name, "in": place, "name": name} | style


def target(place: dict[str, Any], value: Any, path: str = "/items") -> str:
    return build_request(operation(place, path=path), {place["argument"]: value}).target


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,a%2Cb"),
        ("simple", False, OBJECT, "R,100,G,x%20y"),
        ("simple", True, OBJECT, "R=100,G=x%20y"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,a%2Cb"),
        ("label", True, LIST, ".blue.a%2Cb"),
        ("label", True, OBJECT, ".R=100.G=x%20y"),
        ("matrix", False, "blue", ";c=blue"),
        ("matrix", False, LIST, ";c=blue,a%2Cb"),
        ("matrix", True, LIST, ";c=blue;c=a%2Cb"),
        ("matrix", False, OBJECT, ";c=R,100,G,x%20y"),
        ("matrix", True, OBJECT, ";R=100;G=x%20y"),
    ],
)
def test_a_path_is_written_as_its_style_says(style: str, explode: bool, value: Any, written: str) -> None:
    assert target(at("path", style=style, explode=explode), value, "/x/{c}/y") == f"/x/{written}/y"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("style", "value", "written"),
    [
        ({}, "a b&c=d#", "c=a%20b%26c%3Dd%23"),
        ({}, True, "c=true"),
        ({}, 1.5, "c=1.5"),
        ({}, LIST, "c=blue&c=a%2Cb"),
        ({"explode": False}, LIST, "c=blue,a%2Cb"),
        ({}, OBJECT, "R=100&G=x%20y"),
        ({"explode": False}, OBJECT, "c=R,100,G,x%20y"),
        ({"style": "spaceDelimited", "explode": False}, LIST, "c=blue%20a%2Cb"),
        ({"style": "pipeDelimited", "explode": False}, LIST, "c=blue%7Ca%2Cb"),
        ({"style": "deepObject"}, OBJECT, "c%5BR%5D=100&c%5BG%5D=x%20y"),
        ({"style": "deepObject"}, {"a": {"b": [1, 2]}}, "c%5Ba%5D%5Bb%5D%5B0%5D=1&c%5Ba%5D%5Bb%5D%5B1%5D=2"),
        ({"style": "deepObject"}, ["x"], "c%5B0%5D=x"),
        ({"as_json": True}, {"a": 1}, "c=%7B%22a%22%3A1%7D"),
    ],
)
def test_a_query_is_written_as_its_style_says(style: dict[str, Any], value: Any, written: str) -> None:
    assert target(at("query", **style), value) == f"/items?{written}"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "%2e%2e",
            "%252e%252E",
            "..%2f",
            "a%2Fb",
            "a%25252fb",
            "%5c",
            "%3f",
            "%2523",
        ),
        *("..;", "..;x=1", "%2e%2e;x", "..%3B", ". ", " ..", "..%20", "%" + "25" * 9 + "41"),
        *("a\nb", "%0d", "\0", None, [], [".."], ["a", ""], {"k/": 1}, "\ud800"),
    ],
)
def test_a_value_that_would_leave_its_part_of_the_path_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentRefused):
        target(at("path"), value, "/x/{c}")


@pytest.mark.req("BRING-1")
def test_values_that_only_together_lead_out_of_the_path_are_refused() -> None:
    first, second = at("path", "a"), at("path", "b", style="label")

    with pytest.raises(ArgumentRefused):
        build_request(operation(first, path="/x/{a}."), {"a": "."})
    with pytest.raises(ArgumentRefused):
        build_request(operation(second, path="/x/{b}"), {"b": "."})
    assert build_request(operation(first, path="/x/{a}.json"), {"a": "..."}).target == "/x/....json"


@pytest.mark.req("BRING-1")
@given(value=st.text())
def test_whatever_is_sent_in_a_path_stays_one_segment(value: str) -> None:
    try:
        found = target(at("path"), value, "/x/{c}/y")
    except ArgumentRefused:
        return
    assert found.count("/") == 3
    assert unquote(found.split("/")[2]) == value
    assert not {"?", "#", "\\", " "} & set(found)


@pytest.mark.req("BRING-1")
def test_an_objects_own_keys_become_no_parameter_that_the_operation_has() -> None:
    free, page = at("query", "free"), at("query", "page")
    token = {"secret": "TOKEN", "in": "query", "name": "token", "scheme": "plain"}

    for key in ("page", "token", "Token", "token[]"):
        with pytest.raises(ArgumentRefused, match="parameter of its own"):
            build_request(operation(free, page, credentials=[token]), {"free": {key: "x"}})
    with pytest.raises(ArgumentRefused, match="bracket"):
        target(at("query", style="deepObject"), {"a][b": 1})


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("place", ["query", "body"])
@pytest.mark.parametrize(
    ("name", "style", "value"),
    [
        ("amount", {"style": "form", "explode": True}, {"amount": 999}),
        ("free[amount]", {"style": "deepObject"}, {"amount": 999}),
    ],
)
def test_no_value_beside_the_one_that_was_decided_about_is_sent(
    place: str, name: str, style: dict[str, Any], value: Any
) -> None:
    """A service would take the first or the last of two, and a policy has seen one."""
    free, amount = at(place, "free", **style), at(place, name) | {"argument": "amount"}
    body: Any = {"body": FORM} if place == "body" else {}

    with pytest.raises(ArgumentRefused, match="parameter of its own"):
        build_request(operation(free, amount, method="POST", **body), {"free": value, "amount": 1})


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", "a\0b", "\u2028", "é", " a", "a\t"])
def test_a_header_stays_one_plain_line(value: str) -> None:
    with pytest.raises(ArgumentRefused):
        build_request(operation(at("header", "X-Page")), {"X-Page": value})


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Cookie",
        "Authorization",
        "X-Forwarded-Host",
        "X-Original-URL",
        "X-Client-IP",
        "a: b",
        "a\r\nb",
    ],
)
def test_a_header_of_the_gates_is_refused_whatever_the_manifest_says(name: str) -> None:
    with pytest.raises(ArgumentRefused, match="not an agent's to set"):
        build_request(operation(at("header", "h") | {"name": name}), {"h": "x"})


@pytest.mark.req("BRING-1")
def test_headers_and_cookies_are_written() -> None:
    said = operation(
        at("header", "X-Ids"), at("header", "X-Map", explode=True), at("cookie", "sid"), at("cookie", "tags")
    )

    found = build_request(said, {"X-Ids": [1, 2], "X-Map": {"a": 1}, "sid": "a;b", "tags": ["x", "y"]})

    assert dict(found.headers) == {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "X-Ids": "1,2",
        "X-Map": "a=1",
        "Cookie": "sid=a%3Bb; tags=x,y",
    }
    assert found.body is None


@pytest.mark.req("BRING-1")
def test_a_body_of_json_holds_its_arguments_under_the_names_of_the_service() -> None:
    said = operation(
        at("path", "id_path") | {"name": "id"},
        at("body", "id_body") | {"name": "id"},
        at("body", "note"),
        path="/{id}",
        method="PUT",
        body=JSON,
    )

    found = build_request(said, {"id_path": 1, "id_body": 2, "note": None})

    assert (found.method, found.target) == ("PUT", "/1")
    assert json.loads(found.body or b"") == {"id": 2, "note": None}
    assert dict(found.headers)["Content-Type"] == "application/json"


@pytest.mark.req("BRING-1")
def test_a_body_that_is_no_object_is_sent_whole() -> None:
    said = operation(method="POST", body=JSON | {"argument": "body"})

    assert build_request(said, {"body": [1, {"a": "é"}]}).body == '[1,{"a":"é"}]'.encode()
    assert build_request(said, {}).body is None


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("style", "value", "written"),
    [
        ({}, "a b", "c=a%20b"),
        ({}, None, "c="),
        ({}, [1, 2], "c=1&c=2"),
        ({"style": "deepObject"}, [1, 2], "c%5B0%5D=1&c%5B1%5D=2"),
        ({"style": "deepObject"}, {"metadata": {"k": None}}, "c%5Bmetadata%5D%5Bk%5D="),
        ({}, [{"price": "p", "quantity": 2}], "c%5B0%5D%5Bprice%5D=p&c%5B0%5D%5Bquantity%5D=2"),
        ({"as_json": True}, {"a": 1}, "c=%7B%22a%22%3A1%7D"),
    ],
)
def test_a_form_is_written_as_stripe_reads_one(style: dict[str, Any], value: Any, written: str) -> None:
    found = build_request(operation(at("body", **style), method="POST", body=FORM), {"c": value})

    assert found.body == written.encode()


@pytest.mark.req("BRING-1")
def test_what_cannot_be_said_names_its_argument() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = {"a": deep}
    refused: list[tuple[dict[str, Any], Any]] = [
        (at("query", style="deepObject"), deep),
        (at("query"), [["a"]]),
        (at("query"), "\ud800"),
        (at("query"), float("nan")),
        (at("query"), "x" * 20_000),
    ]
    for place, value in refused:
        with pytest.raises(ArgumentRefused) as caught:
            target(place, value)
        assert caught.value.argument in ("c", "")
    with pytest.raises(ArgumentRefused, match="no such argument"):
        build_request(operation(), {"more": 1})
    with pytest.raises(ArgumentRefused, match="needs a value"):
        build_request(operation(at("path"), path="/{c}"), {})


@pytest.mark.req("BRING-1")
def test_the_key_of_a_repeated_call_goes_where_the_manifest_says() -> None:
    keyed = operation(method="POST", idempotency_header="Idempotency-Key")

    assert ("Idempotency-Key", "k1") in build_request(keyed, {}, idempotency_key="k1").headers
    assert (
        build_request(operation(method="POST"), {}, idempotency_key="k1").headers
        == build_request(operation(method="POST"), {}).headers
    )
    with pytest.raises(ArgumentRefused):
        build_request(keyed, {}, idempotency_key="k\r\n1")


def answer(
    body: bytes, status: int = 200, *, kind: str = "application/json", method: str = "GET", **headers: str
) -> Any:
    said = [("Content-Type", kind)] if kind else []
    said += [(name.replace("_", "-"), value) for name, value in headers.items()]
    return read_answer(operation(method=method), status, said, body, max_bytes=1000)


@pytest.mark.req("BRING-1")
def test_an_answer_says_its_status_and_its_body() -> None:
    found = answer(b'{"a": [1]}', link='<https://api.example.org/?page=2>; rel="next", <https://x/>; rel=author')

    assert found.to_result() == {
        "status": 200,
        "body": {"a": [1]},
        "links": {"next": "https://api.example.org/?page=2"},
    }
    assert (found.outcome, found.is_retryable) == ("success", False)
    assert answer(b"", 204).to_result() == {"status": 204, "body": None}
    assert answer(b"hi", kind="text/plain; charset=iso-8859-1").body == "hi"
    assert answer(b"{}", kind="application/vnd.api+json").body == {}
    assert answer(b"\xef\xbb\xbf[]").body == []
    assert answer(b"plain", kind="").body == "plain"
    assert answer(b"", 200, method="HEAD").body is None


@pytest.mark.req("BRING-1")
def test_a_lawful_no_is_an_answer_and_a_redirect_is_none() -> None:
    assert (answer(b'{"message": "no"}', 422).outcome, answer(b'{"message": "no"}', 422).body) == (
        "refused",
        {"message": "no"},
    )
    assert answer(b"<html>", 404, kind="text/html").body == "<html>"
    moved = answer(b"secret page", 302, kind="text/html", location="https://elsewhere.example/")
    assert (moved.outcome, moved.body, moved.links) == ("redirected", None, {})
    assert answer(b"", 500).outcome == "failed"
    assert answer(b"", 304).outcome == "success"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("\u6ca1\u6709".encode("gbk"), "text/html; charset=gbk"),
        (b"\x89PNG", "image/png"),
        (b"{", "application/json"),
        (b"x" * 2000, "text/plain"),
    ],
)
def test_a_no_counts_in_whatever_words_it_is_written(body: bytes, kind: str) -> None:
    for status, outcome in ((404, "refused"), (429, "refused"), (503, "failed")):
        found = answer(body, status, kind=kind, retry_after="7")

        assert (found.outcome, found.body, found.retry_after_s) == (outcome, None, 7)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7), ("999999", 86_400), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("9" * 30, None)],
)
def test_when_to_ask_again_is_kept_as_seconds(said: str, seconds: int | None) -> None:
    found = answer(b"", 429, retry_after=said)

    assert (found.retry_after_s, found.is_retryable) == (seconds, True)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"<html>log in</html>", {"kind": "text/html"}),
        (b"{", {}),
        (b"[" * 500, {}),
        (b'{"a": 1, "a": 2}', {}),
        (b"[" + b"1" * 400 + b"]", {}),
        (b"x" * 1001, {"kind": "text/plain"}),
        (b"\xff", {"kind": "text/plain"}),
        (b"+AD4-", {"kind": "text/plain; charset=utf-7"}),
        (b"x", {"kind": "text/plain; charset=idna"}),
        (b"\x89PNG", {"kind": "image/png"}),
        (b"x", {"content_encoding": "br"}),
        (b"x", {"content_encoding": "gzip"}),
        (gzip.compress(b"0" * 10_000_000), {"content_encoding": "gzip"}),
        (zlib.compress(b"0" * 10_000_000), {"content_encoding": "deflate"}),
        (gzip.compress(b"0" * 900)[:-12], {"content_encoding": "gzip"}),
        (gzip.compress(b"[1]") + b"more", {"content_encoding": "gzip"}),
        (gzip.compress(b"") * 200 + gzip.compress(b"[1]"), {"content_encoding": "gzip"}),
        (b"a\0b", {"kind": "text/plain"}),
        (b'"\\u0000"', {}),
        (b"[" * 32 + b"]" * 32, {}),
    ],
)
def test_an_answer_that_is_none_is_refused(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(AnswerUnreadable):
        answer(body, **headers)  # type: ignore[arg-type]


@pytest.mark.req("BRING-1")
def test_an_answer_that_is_compressed_all_the_same_is_read() -> None:
    assert answer(gzip.compress(b'{"a": 1}'), content_encoding="gzip").body == {"a": 1}
    parts = gzip.compress(b'{"a": 1') + gzip.compress(b', "b": 2}')
    assert answer(parts, content_encoding="gzip").body == {"a": 1, "b": 2}


@pytest.mark.req("BRING-1")
@given(
    body=st.binary(max_size=300),
    kind=st.sampled_from(["application/json", "text/plain", "", "x", 'text/plain;charset="', "; ;"]),
)
def test_no_answer_breaks_its_reader(body: bytes, kind: str) -> None:
    try:
        json.dumps(answer(body, kind=kind).to_result())
    except AnswerUnreadable:
        return
