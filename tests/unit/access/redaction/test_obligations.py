"""Obligations: is done to an output what the policy wants, and is it withheld when that cannot be done?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.problems import ObligationFailed
from access.redaction import KINDS, apply_detectors, apply_obligations, check_obligations, find_hits, masked_view
from access.redaction.masks import masked_hit
from access.redaction.pointers import parse_pointer

MANIFESTS = Path(__file__).parents[4] / "tools" / "commerce" / "manifests"
OUTPUT = {
    "customer": {"email": "john@example.com", "card": "4111 1111 1111 1111", "age": 44},
    "lines": [{"note": "call 13812345678"}, {"note": "nothing"}],
    "total": 12,
}


def obliged(value: Any, *obligations: dict[str, Any], **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    result = apply_obligations(value, obligations, call_id="inv_1", **more)
    return result.value, result.applied


@pytest.mark.parametrize(
    ("text", "kind", "mask"),
    [
        ("john@example.com", "email", "j***@e***.com"),
        ("13812345678", "phone", "138****5678"),
        ("+44 20 7946 0958", "phone", "+** ** **** 0958"),
        ("4111 1111 1111 1111", "card", "**** **** **** 1111"),
        ("11010519491231002X", "cn_id", "**************002X"),
        ("DE89370400440532013000", "iban", "******************3000"),
        ("536-22-8726", "us_ssn", "***-**-8726"),
        ("10.1.2.3", "ip", "10.1.*.*"),
        ("2001:db8::1", "ip", "2001:***"),
        ("北京市朝阳区建国路88号阳光小区2栋", "address", "北京市朝阳区***"),
        ("10 Downing Street, London SW1A 2AA", "address", "1*** D*** S*** L*** S*** 2***"),
        ("AKIAIOSFODNN7EXAMPLE", "secret", "***"),
    ],
)
def test_a_mask_keeps_the_shape_and_not_the_thing(text: str, kind: str, mask: str) -> None:
    assert masked_hit(text, kind) == mask
    assert find_hits(mask) == []


@pytest.mark.req("TOOLS-25")
def test_a_place_is_masked_and_the_rest_is_not() -> None:
    value, applied = obliged(
        OUTPUT, {"action": "mask", "pointer": "/customer/email"}, {"action": "redact", "pointer": "/lines/*/note"}
    )

    assert value == OUTPUT | {
        "customer": OUTPUT["customer"] | {"email": "j***@e***.com"},  # type: ignore[operator]
        "lines": [{"note": "[redacted]"}, {"note": "[redacted]"}],
    }
    assert applied == [
        {"action": "redact", "pointer": "/lines/*/note", "count": 2},
        {"action": "mask", "pointer": "/customer/email", "count": 1},
    ]
    assert OUTPUT["customer"]["email"] == "john@example.com"  # type: ignore[index]


@pytest.mark.req("TOOLS-25")
def test_a_whole_number_that_came_as_a_float_is_looked_at() -> None:
    everything = {"action": "redact", "detector": "all"}

    value, _ = obliged({"card": 4111111111111111.0, "share": 0.5}, everything)

    assert value == {"card": "[redacted:card]", "share": 0.5}
    assert masked_view({"paid": 4111111111111111.0}) == {"paid": "************1111"}


@pytest.mark.req("TOOLS-25")
def test_a_detector_finds_its_kind_in_texts_names_and_numbers() -> None:
    value, applied = obliged(
        {"john@example.com": ["a@example.com and b@example.org"], "n": 4111111111111111, "x": [1.5, None, True]},
        {"action": "redact", "detector": "all"},
    )

    assert value == {
        "[redacted:email]": ["[redacted:email] and [redacted:email]"],
        "n": "[redacted:card]",
        "x": [1.5, None, True],
    }
    assert applied == [
        {"action": "redact", "detector": "card", "count": 1},
        {"action": "redact", "detector": "email", "count": 3},
    ]


def test_names_that_become_the_same_lose_nothing() -> None:
    value, _ = obliged({"a@example.com": 1, "b@example.com": 2}, {"action": "redact", "detector": "email"})

    assert value == {"[redacted:email]": 1, "[redacted:email] (2)": 2}


def test_of_two_that_speak_of_the_same_the_stricter_has_the_last_word() -> None:
    mask, redact = {"action": "mask", "detector": "email"}, {"action": "redact", "detector": "all"}
    place, whole = {"action": "mask", "pointer": "/customer/email"}, {"action": "redact", "pointer": "/customer"}

    for both in ((mask, redact), (redact, mask)):
        assert obliged("a@example.com", *both)[0] == "[redacted:email]"
    for both in ((place, whole), (whole, place)):
        assert obliged(OUTPUT, *both)[0]["customer"] == "[redacted]"


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize("on_failure", ["deny", "degrade"])
def test_a_place_that_is_not_there_fails_and_the_problem_says_what_the_policy_wants_then(on_failure: str) -> None:
    with pytest.raises(ObligationFailed) as raised:
        obliged(OUTPUT, {"action": "mask", "pointer": "/customer/phone", "on_failure": on_failure})

    assert raised.value.details["on_failure"] == on_failure
    assert "/customer/phone" in raised.value.detail
    assert "john" not in str(raised.value.to_error())


def test_of_several_that_fail_the_strictest_decides() -> None:
    lenient = {"action": "mask", "pointer": "/a", "on_failure": "degrade"}

    with pytest.raises(ObligationFailed) as raised:
        obliged({}, lenient, {"action": "mask", "pointer": "/b"})
    assert raised.value.details["on_failure"] == "deny"


def test_a_place_may_be_missing_where_that_was_said_or_where_there_is_nothing_to_hide() -> None:
    assert obliged({}, {"action": "mask", "pointer": "/a", "optional": True}) == (
        {},
        [{"action": "mask", "pointer": "/a", "count": 0}],
    )
    assert obliged({"rows": []}, {"action": "mask", "pointer": "/rows/*/a"})[0] == {"rows": []}
    assert obliged({"rows": [{}, {"a": "long text"}]}, {"action": "mask", "pointer": "/rows/*/a"})[0] == {
        "rows": [{}, {"a": "l***"}]
    }


def test_an_output_that_is_no_longer_what_the_tool_promises_is_not_delivered() -> None:
    with pytest.raises(ObligationFailed, match="promises"):
        obliged(
            OUTPUT, {"action": "redact", "pointer": "/total"}, is_valid=lambda value: isinstance(value["total"], int)
        )


@pytest.mark.req("TOOLS-25")
def test_a_watermark_says_which_call_an_output_is_of() -> None:
    assert obliged({"a": 1}, {"action": "watermark"})[0] == {"a": 1, "_watermark": "toolhub inv_1"}
    assert obliged("text", {"action": "watermark", "text": "for {call_id} only"})[0] == "text [for inv_1 only]"
    assert obliged({"a": ["x", "y"]}, {"action": "watermark", "pointer": "/a/*"})[0] == {
        "a": ["x [toolhub inv_1]", "y [toolhub inv_1]"]
    }
    two = ({"action": "watermark", "text": "one"}, {"action": "watermark", "text": "two"})
    assert obliged({}, *two)[0] == {"_watermark": "one; two"}


@pytest.mark.parametrize(
    ("value", "obligation"),
    [
        ([1], {"action": "watermark"}),
        ({"_watermark": "mine"}, {"action": "watermark"}),
        ({"a": 1}, {"action": "watermark", "pointer": "/a"}),
        ({"a": 1}, {"action": "watermark", "pointer": "/b"}),
    ],
)
def test_a_watermark_that_has_no_place_fails(value: Any, obligation: dict[str, Any]) -> None:
    with pytest.raises(ObligationFailed):
        obliged(value, obligation)


def test_a_pointer_is_read_as_rfc_6901_has_it() -> None:
    assert parse_pointer("") == ()
    assert parse_pointer("/a~1b/~0/0/") == ("a/b", "~", "0", "")
    assert obliged({"a/b": ["secret text"]}, {"action": "redact", "pointer": "/a~1b/0"})[0] == {"a/b": ["[redacted]"]}
    assert obliged({"a": 1}, {"action": "redact", "pointer": ""})[0] == "[redacted]"
    with pytest.raises(ObligationFailed):
        obliged(["x"], {"action": "redact", "pointer": "/01"})


def test_what_is_said_beside_the_output_goes_through_the_detectors_too() -> None:
    said = {"detail": "no card 4111 1111 1111 1111", "count": 3}

    assert apply_detectors(
        said, [{"action": "mask", "detector": "card"}, {"action": "redact", "pointer": "/detail"}]
    ) == {
        "detail": "no card **** **** **** 1111",
        "count": 3,
    }


@pytest.mark.parametrize(
    "obligations",
    [
        [{"action": "mask", "pointer": "/a"}],
        [{"action": "redact", "detector": "all", "on_failure": "degrade"}],
        [{"action": "watermark"}, {"action": "watermark", "pointer": "/a/*", "text": "x"}],
        [{"action": "mask", "pointer": "", "optional": True}],
    ],
)
def test_obligations_that_can_be_carried_out_are_accepted(obligations: list[dict[str, Any]]) -> None:
    assert check_obligations(obligations) == []


@pytest.mark.parametrize(
    ("obligations", "pointer"),
    [
        ([{"action": "hide", "pointer": "/a"}], "/0/action"),
        ([{"action": "mask"}], "/0"),
        ([{"action": "mask", "pointer": "/a", "detector": "all"}], "/0"),
        ([{"action": "mask", "pointer": "a"}], "/0/pointer"),
        ([{"action": "mask", "pointer": "/~2"}], "/0/pointer"),
        ([{"action": "mask", "detector": "names"}], "/0/detector"),
        ([{"action": "mask", "pointer": "/a", "text": "x"}], "/0/text"),
        ([{"action": "mask", "detector": "all", "optional": True}], "/0/optional"),
        ([{"action": "watermark", "detector": "all"}], "/0/detector"),
        ([{"action": "mask", "pointer": "/a", "on_failure": "ignore"}], "/0/on_failure"),
        ({"action": "mask"}, ""),
    ],
)
def test_obligations_that_cannot_be_read_are_found_at_their_place(obligations: Any, pointer: str) -> None:
    assert pointer in [finding["pointer"] for finding in check_obligations(obligations)]


def test_the_schema_knows_the_detectors_that_there_are() -> None:
    for kind in ("all", *KINDS):
        assert check_obligations([{"action": "mask", "detector": kind}]) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_every_value_can_be_looked_through_and_a_second_time_changes_nothing(value: Any) -> None:
    once, _ = obliged(value, {"action": "redact", "detector": "all"})

    assert obliged(once, {"action": "redact", "detector": "all"})[0] == once


@pytest.mark.req("SPEC-10")
def test_an_approver_recognises_a_call_and_sees_nobodys_data() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pet": {"type": "string", "x-sensitive": True},
            "door": {"$ref": "#/$defs/code"},
            "rows": {"type": "array", "items": {"anyOf": [{"properties": {"q": {"format": "password"}}}]}},
        },
        "$defs": {"code": {"type": "string", "format": "password"}},
    }
    value = {
        "sku": "A-1001",
        "quantity": 2,
        "note": "for a@example.com",
        "shippingAddress": {"line": "Main Street 5", "city": "Bonn"},
        "姓名": "王小明",
        "phone": 4155552671,
        "pet": "Rex the dog",
        "door": "0815",
        "rows": [{"q": "abc", "r": "abc"}],
    }

    assert masked_view(value, schema) == {
        "sku": "A-1001",
        "quantity": 2,
        "note": "for a***@e***.com",
        "shippingAddress": {"line": "M***", "city": "B***"},
        "姓名": "***",
        "phone": "***",
        "pet": "R***",
        "door": "0***",
        "rows": [{"q": "***", "r": "abc"}],
    }


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("tool", ["checkout.compute_total", "checkout.create_draft_order", "shipping.quote_options"])
def test_an_approver_of_the_demonstration_sees_where_about_goods_go_and_to_nobody_in_particular(tool: str) -> None:
    manifest = json.loads((MANIFESTS / f"commerce.{tool}.json").read_text())
    destination = {
        "country": "DE",
        "state": "BE",
        "city": "Berlin",
        "postal_code": "10115",
        "line1": "Invalidenstrasse 43",
        "line2": "c/o Meyer",
        "recipient": "Ada Lovelace",
    }
    assert destination.keys() == manifest["input_schema"]["properties"]["destination"]["properties"].keys()
    assert "personal" in manifest["data_classes"]

    seen = masked_view({"destination": destination}, manifest["input_schema"])["destination"]

    assert {name for name in destination if seen[name] == destination[name]} == {"country", "state", "city"}
    assert not any(part in str(seen) for part in ("10115", "Invaliden", "43", "Meyer", "Ada", "Lovelace"))


def test_a_schema_that_refers_to_itself_is_no_trap() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"a": {"$ref": "#"}}}},
    }

    assert masked_view({"a": {"a": "x"}}, schema) == {"a": {"a": "x"}}
