"""Result refusals: does the refusal of a tool's result quote nothing of it, and nothing that was injected?"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors  # the public list of them has no sentences

from tests.support.sdk_calls import called
from unitools import Injected, Universe
from unitools.outcomes import list_result_findings

SECRET = "hunter2"


def refuse(code: str) -> Any:
    def check(value: str) -> str:
        raise PydanticCustomError(code, "Not an IBAN: {v}", {"v": value})

    return AfterValidator(check)


def own_error(value: str) -> str:
    raise PydanticKnownError("get_attribute_error", {"error": f"KeyError: {value}"})


@pytest.mark.req("TOOLS-21", "UNI-2")
@pytest.mark.parametrize(
    "declared",
    [
        Annotated[str, refuse("iban")],
        Annotated[str, refuse("value_error")],
        Annotated[str, refuse("string_type")],  # as if it were one of pydantic's
        Annotated[str, AfterValidator(own_error)],
    ],
)
def test_the_words_of_a_type_of_ones_own_are_told_neither_to_the_log_nor_to_the_model(
    declared: Any, caplog: pytest.LogCaptureFixture
) -> None:
    u = Universe()

    def account(iban: Annotated[str, Injected("iban")]):  # type: ignore[no-untyped-def]
        return {"iban": iban}

    account.__annotations__["return"] = dict[Literal["iban"], declared]
    u.tool(account)
    result = called(u, "account", {"iban": SECRET})

    assert result.code == "TOOL.OUTPUT_INVALID"
    assert "The value is refused by a validator of its type" in result.message
    assert SECRET not in result.to_content() + caplog.text


@pytest.mark.req("TOOLS-23")
def test_what_the_schema_says_is_told() -> None:
    assert find(Annotated[int, Field(gt=3)], 2) == "Input should be greater than 3"
    assert find(Literal["a", "b"], SECRET) == "Input should be 'a' or 'b'"
    assert find(Annotated[str, Field(pattern="^a$")], SECRET) == "String should match pattern '^a$'"
    assert find(list[int], 1) == "Input should be a valid list"
    assert find(Annotated[list[str], Field(max_length=1)], [SECRET] * 2).endswith(
        "at most 1 item after validation, not 2"
    )


def find(declared: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(declared).validate_python(value)
    return str(list_result_findings(refused.value, (), value)[0]["msg"])


FILLED = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "actual_length"), 3),
    **dict.fromkeys(
        ("expected_version", "max_digits", "decimal_places", "whole_digits", "tz_expected", "tz_actual"), 3
    ),
}
FROM_WHAT_WAS_GIVEN = {"error", "encoding_error", "attribute", "tag", "tz_actual"}


@pytest.mark.req("TOOLS-21")
def test_each_sentence_of_pydantic_that_takes_something_from_the_value_is_left_out() -> None:
    for known in list_all_errors():
        names = {name for _, name, *_ in string.Formatter().parse(known["message_template_python"]) if name}
        context = {name: FILLED.get(name, SECRET) for name in names - {"expected_plural"}}

        def check(value: object, code: Any = known["type"], context: Any = context) -> object:
            raise PydanticKnownError(code, context)

        told = find(Annotated[Any, PlainValidator(check)], 1)
        assert told.startswith(("The value is", "This is none")) == bool(names & FROM_WHAT_WAS_GIVEN), known["type"]


@dataclass
class Account:
    rows: list[dict[int, int | list[int]]]


@pytest.mark.req("TOOLS-21")
def test_a_number_is_told_where_it_is_a_place_in_a_list_and_not_where_it_is_a_key() -> None:
    u, card = Universe(), 4111111111111111

    @u.tool
    def account() -> Account:
        found: Any = {"rows": [{1: 1}, {card: [2, "x"]}]}
        return found  # type: ignore[no-any-return]

    result = called(u, "account")

    assert str(card) not in result.to_content()
    assert ["rows", 1, 1] in [each["loc"] for each in result.details]
