"""Signature refusals: does each name the parameter, in words that say what to write instead?"""

from __future__ import annotations

import enum
from collections.abc import Callable  # noqa: TC003 - read while it runs
from typing import Annotated, Any, Literal, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from tests.support.sdk_calls import called
from unitools import Injected, Status, ToolMetadata, Universe, runtime
from unitools.registration_errors import NotATool


class Colour(enum.Enum):
    RED = "red"


class Old(TypedDict):
    x: int


class New(typing_extensions.TypedDict):
    x: int


class Opaque: ...


def bare(ok: int, query): ...  # type: ignore[no-untyped-def]
def typed_dict(ok: int, where: list[Old]) -> None: ...
def gives_typed_dict() -> Old: ...  # type: ignore[empty-body]
def opaque(ok: int, client: list[Opaque] | None = None) -> None: ...
def function(ok: int, then: Callable[[], int]) -> None: ...
def text_for_number(ok: int, count: int = "x") -> None: ...  # type: ignore[assignment]
def none_for_number(ok: int, count: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def beyond_bounds(ok: int, count: Annotated[int, Field(ge=1)] = 0) -> None: ...
def name_of_choice(ok: int, colour: Colour = "red") -> None: ...  # type: ignore[assignment]
def field_of_pydantic(ok: int, count: int = Field("x")) -> None: ...  # type: ignore[assignment]


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (bare, r"query has no annotation.*Write query: str"),
        (typed_dict, r"its parameter where is a typing\.TypedDict.*typing_extensions"),
        (gives_typed_dict, r"what it returns is a typing\.TypedDict"),
        (opaque, r"its parameter client is list\[.*Opaque\] \| None, which has no JSON Schema.*Injected"),
        (function, r"its parameter then is .*Callable\[\[\], int\]"),
        (text_for_number, r"the default of count is none of its values \(Input should be a valid integer\)"),
        (none_for_number, r"the default of count .* Write count: int \| None = None"),
        (beyond_bounds, r"the default of count .*greater than or equal to 1"),
        (name_of_choice, r"the default of colour"),
        (field_of_pydantic, r"the default of count"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_refusal_names_the_parameter_and_what_to_write(function: Any, why: str) -> None:
    with pytest.raises(NotATool, match=why) as refusal:
        ToolMetadata.from_func(function)

    assert not any(word in str(refusal.value) for word in ("pydantic-core", "arbitrary_types", "https://"))


@pytest.mark.req("UNI-2")
def test_a_default_is_not_told_in_a_refusal() -> None:
    def connect(port: int = "hunter2") -> None: ...  # type: ignore[assignment]

    with pytest.raises(NotATool, match="the default of port") as refusal:
        ToolMetadata.from_func(connect)

    assert "hunter2" not in str(refusal.value)


def taken(
    a: Any,
    b: list[int] = [],  # noqa: B006
    c: Colour = Colour.RED,
    d: float = 1,
    e: Literal["x"] | None = None,
    f: New | None = None,
    g: tuple[int, ...] = (),
    h: Annotated[int, Injected("n")] = "of the caller",  # type: ignore[assignment]
    i: int = Field(3, ge=1),
) -> New:
    return {"x": i}


@pytest.mark.req("UNI-2")
def test_what_pydantic_takes_stays_a_tool() -> None:
    assert set(ToolMetadata.from_func(taken).spec.parameters["properties"]) == set("abcdefgi")


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize("function", [bare, gives_typed_dict, text_for_number])
def test_what_was_published_before_a_refusal_was_made_still_runs(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_published", True)

    assert ToolMetadata.from_func(function).parameters_model


class Owned(BaseModel):
    n: int
    tags: list[int]


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize(
    ("declared", "returned", "loc", "word"),
    [
        (Owned, {"n": 1, "tags": [1, "hunter2"]}, ["tags", 1], "valid integer"),
        (Owned, {"n": 1}, ["tags"], "required"),
        (int, "hunter2", [], "valid integer"),
        (dict[str, list[float]], {"hunter2": [1, float("nan")]}, ["*", 1], "NaN"),
        (list[Any], [1, b"\xff"], [1], "bytes"),
        (Any, {"a": {"b": object()}}, ["*", "*"], "object"),
        (str, "\ud800", [], "surrogate"),
    ],
)
def test_a_wrong_result_says_which_field_and_no_value(
    declared: Any, returned: Any, loc: list[Any], word: str, caplog: pytest.LogCaptureFixture
) -> None:
    u = Universe()

    def gives() -> Any:
        return returned

    gives.__annotations__["return"] = declared
    u.tool(gives)
    result = called(u, "gives")

    assert (result.status, result.code) == (Status.TOOL_ERROR, "TOOL.OUTPUT_INVALID")
    assert [each["loc"] for each in result.details] == [loc]
    assert word in result.message
    assert word in caplog.text
    assert "hunter2" not in result.to_content() + caplog.text


@pytest.mark.req("UNI-2")
def test_bytes_are_base64_on_both_sides() -> None:
    u = Universe()

    @u.tool
    def turn(image: bytes, mask: bytes | None = None, more: list[bytes] = []) -> dict[str, bytes | int]:  # noqa: B006
        return {"image": image[::-1], "mask": mask or b"", "count": len(more)}

    spec = u.tools["turn"].spec
    assert spec.parameters["properties"]["image"] == {"type": "string", "contentEncoding": "base64"}
    result = called(u, "turn", image="-_8=", mask="+/8", more=["AA==", "/w"])
    assert result.value == {"image": "//s=", "mask": "+/8=", "count": 2}
    refused = called(u, "turn", image="no base64!")
    assert (refused.status, refused.details[0]["loc"]) == (Status.INVALID_ARGUMENTS, ["image"])
