"""Functions as tools: does a function say all of itself as a tool, and is it refused where it is written if it cannot?"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from tests.support.sdk_calls import called
from unitools import Annotations, Injected, Status, ToolMetadata, Universe
from unitools.registration_errors import NotATool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal as OnlyForCheckers


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Quote(BaseModel):
    price: float
    day: date


async def get_quote(
    symbol: str,
    ccy: Literal["EUR", "USD"] = "EUR",
    *,
    limit: Annotated[int, Field(ge=1, description="at most")] = 3,
    db: Annotated[OnlyForCheckers, Injected("database")],
    user: Optional[Annotated[str, Injected()]] = None,  # noqa: UP045 - the form that people write
) -> Quote:
    """Latest price.

    Only of shares.

    Args:
        symbol: exchange symbol,
            in capitals
        ccy (str): currency of the answer
        limit: not this text
        db: SECRET WORD

    Returns:
        A quote.
    """
    return Quote(price=1.5, day=date(2026, 1, 2))


@pytest.mark.req("UNI-2")
def test_signature_annotations_and_docstring_are_the_tool() -> None:
    tool = ToolMetadata.from_func(get_quote, "quote.get", ["finance"], idempotent=True)

    assert tool.spec.description == "Latest price.\n\nOnly of shares."
    assert tool.spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["symbol"],
        "properties": {
            "symbol": {"type": "string", "description": "exchange symbol, in capitals"},
            "ccy": {
                "type": "string",
                "enum": ["EUR", "USD"],
                "default": "EUR",
                "description": "currency of the answer",
            },
            "limit": {"type": "integer", "minimum": 1, "default": 3, "description": "at most"},
        },
    }
    assert tool.injected_params == {"db": "database", "user": "user"}
    assert tool.spec.output_schema is not None
    assert set(tool.spec.output_schema["properties"]) == {"price", "day"}
    assert tool.is_async
    assert tool.spec.annotations.idempotent
    assert "SECRET" not in repr(tool.spec)
    assert tool.origin.startswith("get_quote (test_functions_as_tools.py:")


@pytest.mark.req("UNI-2")
def test_parameters_may_have_the_names_of_pydantics_own() -> None:
    u = Universe()

    @u.tool
    def awkward(
        schema: int, copy: int, json: int, model_config: int, _private: int, self_: int, p_x: int = 0
    ) -> list[int]:
        return [schema, copy, json, model_config, _private, self_, p_x]

    given = {"schema": 1, "copy": 2, "json": 3, "model_config": 4, "_private": 5, "self_": 6}
    assert called(u, "awkward", **given).value == [1, 2, 3, 4, 5, 6, 0]
    assert set(u.tools["awkward"].spec.parameters["properties"]) == {*given, "p_x"}
    assert called(u, "awkward", **given, p_schema=1).status is Status.INVALID_ARGUMENTS


@pytest.mark.req("UNI-2")
def test_a_default_that_can_change_is_new_for_each_call() -> None:
    u = Universe()

    @u.tool
    def collect(item: int, into: list[int] = []) -> list[int]:  # noqa: B006 - that is what is tested
        into.append(item)
        return into

    assert [called(u, "collect", item=each).value for each in (1, 2)] == [[1], [2]]


def varies(*symbols: str) -> None: ...
def takes_all(**rest: str) -> None: ...
def positional(symbol: str, /) -> None: ...
def counts() -> Iterator[int]:
    yield 1


async def streams() -> Any:
    yield 1


def unknown_type(when: OnlyForCheckers) -> None: ...
def two_keys(db: Annotated[str, Injected("a"), Injected("b")]) -> None: ...
def wrong_text(x: "int ?") -> None: ...  # type: ignore[valid-type]  # noqa: F722


class Klass:
    @classmethod
    def of_class(cls) -> None: ...


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (varies, r"takes \*symbols"),
        (takes_all, r"takes \*\*rest"),
        (positional, "symbol is positional only"),
        (counts, "it yields"),
        (streams, "it yields"),
        (functools.partial(counts), "it yields"),
        (unknown_type, "OnlyForCheckers in the annotation of when"),
        (two_keys, "under several keys: a, b"),
        (wrong_text, "the annotation of x cannot be read"),
        (Klass, "it is no function"),
        (Klass(), "no name of a tool"),
        (lambda x: x, "no name of a tool"),
        (vars(Klass)["of_class"], "Bind the class"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_reason(function: Any, why: str) -> None:
    with pytest.raises(NotATool, match=why):
        ToolMetadata.from_func(function)


def test_a_type_without_a_schema_is_refused_as_a_parameter_and_not_told_as_a_result() -> None:
    class Opaque: ...

    def takes(x: Opaque) -> None: ...
    def gives() -> Opaque:
        return Opaque()

    with pytest.raises(NotATool, match="its parameter x is Opaque, which has no JSON Schema"):
        ToolMetadata.from_func(takes)
    assert ToolMetadata.from_func(gives).spec.output_schema is None


@pytest.mark.req("UNI-2")
def test_a_partial_hides_what_it_has_given() -> None:
    u = Universe()

    def greet(greeting: str, name: str, mark: str = "!") -> str:
        return f"{greeting}, {name}{mark}"

    u.tool("hello")(functools.partial(greet, "Hello", mark="?"))

    assert set(u.tools["hello"].spec.parameters["properties"]) == {"name"}
    assert called(u, "hello", name="Ada").value == "Hello, Ada?"
    assert called(u, "hello", name="Ada", mark="#").status is Status.INVALID_ARGUMENTS


def test_a_decorated_function_is_read_through_its_decorator() -> None:
    u = Universe()

    def loud(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(**given: Any) -> Any:
            return function(**given).upper()

        return wrapper

    @u.tool
    @loud
    def say(word: str) -> str:
        return word

    assert called(u, "say", word="hi").value == "HI"


@pytest.mark.req("UNI-7")
@pytest.mark.parametrize(
    ("given", "got"),
    [
        ({"n": 1.0}, 1),
        ({"n": "1"}, None),
        ({"n": True}, None),
        ({"n": None}, None),
        ({"n": 2**70}, 2**70),
        ({}, None),
        ({"n": 1, "more": 2}, None),
        ({"n": float("nan")}, None),
        ({"n": "\ud800"}, None),
        ({"n": {1, 2}}, None),
    ],
)
def test_types_are_those_of_json(given: dict[str, Any], got: int | None) -> None:
    u = Universe()

    @u.tool
    def number(n: int) -> int:
        return n

    result = called(u, "number", **given)
    assert result.value == got
    assert result.status is (Status.INVALID_ARGUMENTS if got is None else Status.OK)


def many(
    text: str,
    count: int = 1,
    share: float | None = None,
    colour: Colour = Colour.RED,
    where: Point | None = None,
    words: list[str] = [],  # noqa: B006
    named: dict[str, int] | None = None,
) -> None: ...


json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["red", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.req("UNI-7")
@given(
    st.dictionaries(st.sampled_from(["text", "count", "share", "colour", "where", "words", "named", "p_text"]), json)
)
def test_arguments_are_taken_exactly_if_the_schema_takes_them(arguments: dict[str, Any]) -> None:
    tool = MANY
    try:
        tool.validated(arguments)
        taken = True
    except ValidationError:
        taken = False

    assert taken is VALID_FOR_MANY.is_valid(arguments)


MANY = ToolMetadata.from_func(many)
VALID_FOR_MANY = jsonschema_rs.Draft202012Validator(dict(MANY.spec.parameters))


@pytest.mark.req("UNI-7")
def test_refused_arguments_are_told_by_place_and_only_the_name_of_one_too_many_is_quoted() -> None:
    u = Universe()

    @u.tool
    def save(amount: int, where: Point, user: Annotated[str, Injected("uid")]) -> None: ...

    result = called(u, "save", {"uid": "u1"}, amount="hunter2", where={"x": "hunter2", "z": 1}, user="mallory")

    assert result.status is Status.INVALID_ARGUMENTS
    assert {(*each["loc"], each["code"]) for each in result.details} == {
        ("amount", "int_type"),
        ("where", "x", "int_type"),
        ("where", "unexpected_keyword_argument"),
        ("extra_forbidden",),
    }
    for name in ("user", "z"):
        assert f"'{name}' was unexpected" in result.message
    for secret in ("hunter2", "mallory", "u1", "uid"):
        assert secret not in result.to_content()


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (Quote(price=1, day=date(2026, 1, 2)), {"price": 1.0, "day": "2026-01-02"}),
        ({"price": 2, "day": "2026-01-02"}, {"price": 2.0, "day": "2026-01-02"}),
    ],
)
def test_a_value_becomes_json_as_it_is_declared(returned: Any, value: Any) -> None:
    u = Universe()

    @u.tool
    def quote() -> Quote:
        return returned  # type: ignore[no-any-return]

    assert called(u, "quote").value == value


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize("returned", ["many", float("nan"), object(), {"a": {1, object()}}])
@pytest.mark.parametrize("declared", [float, list[int], Any])
def test_a_value_other_than_declared_is_an_error_of_the_tool(returned: Any, declared: Any) -> None:
    u = Universe()

    def gives():  # type: ignore[no-untyped-def]
        return returned

    gives.__annotations__["return"] = declared
    u.tool(gives)
    result = called(u, "gives")

    if declared is Any and isinstance(returned, (str, float)):
        assert result.value == (returned if isinstance(returned, str) else None)
    else:
        assert (result.code, result.executed) == ("TOOL.OUTPUT_INVALID", True)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"tags": "finance"}, "Tags are a list"),
        ({"tags": ["Not a tag"]}, "is no tag"),
        ({"name": "a b"}, "no name of a tool"),
        ({"name": "x" * 129}, "no name of a tool"),
        ({"side_effect": "Harmless"}, "is no side effect"),
        ({"safety_class": "Safe"}, "is no safety class"),
        ({"middlewares": ["audit"]}, "is no middleware"),
    ],
)
def test_a_wrong_word_is_refused_where_it_is_written(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        Universe().tool(**wrong)(get_quote)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@pytest.mark.req("UNI-7")
def test_the_kind_of_a_value_is_not_quoted_either() -> None:
    u = Universe()

    @u.tool
    def feed(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return pet.kind

    assert called(u, "feed", pet={"kind": "dog"}).value == "dog"
    refused = called(u, "feed", pet={"kind": "hunter2"})
    assert refused.details == (
        {"loc": ["pet"], "code": "union_tag_invalid", "msg": "This is none of the kinds that are expected"},
    )
    assert "hunter2" not in refused.to_content()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, Annotations()),
        ({"side_effect": "Read"}, Annotations(read_only=True, idempotent=True, open_world=False)),
        ({"side_effect": "Write"}, Annotations(destructive=True, open_world=False)),
        ({"side_effect": "Network"}, Annotations()),
        ({"side_effect": "Network", "safety_class": "High"}, Annotations(destructive=True)),
        (
            {"side_effect": "Write", "destructive": False, "idempotent": True},
            Annotations(idempotent=True, open_world=False),
        ),
        (
            {"side_effect": "Read", "manifest": {"capabilities": {"net": [{"host": "example.org"}], "browser": False}}},
            Annotations(read_only=True, idempotent=True, open_world=True),
        ),
    ],
)
def test_what_the_author_does_not_say_follows_from_the_side_effect(said: Any, expected: Annotations) -> None:
    assert ToolMetadata.from_func(get_quote, **said).spec.annotations == expected
