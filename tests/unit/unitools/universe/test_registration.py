"""Registration: what is registered in a Universe, under which name, and what is refused there?"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import pytest

from tests.support.sdk_calls import called
from unitools import Injected, Name, Prefix, Tag, Universe
from unitools.registration_errors import NotATool, NotBound, ToolNameTaken


def nothing() -> None: ...
def other() -> None: ...


@pytest.mark.req("UNI-1")
def test_a_function_stays_what_it_was() -> None:
    u = Universe()

    assert u.tool(nothing) is nothing
    assert u.tool("named", ["x"])(other) is other
    assert u.tools.names == ["nothing", "named"]


@pytest.mark.req("UNI-1")
def test_public_methods_become_tools_under_the_prefix_and_no_property_is_read() -> None:
    u = Universe("acme.crm")

    class Base:
        def inherited(self) -> str:
            return "base"

        def overridden(self) -> str:
            return "base"

    @u.bind(prefix="crm.", tags=["crm"], exclude=["close", "drop_*"], serial_group="crm")
    class Crm(Base):
        LIMIT = 3

        class Row: ...

        def overridden(self) -> str:
            return "crm"

        @property
        def broken(self) -> str:
            raise AssertionError

        @functools.cached_property
        def broken_too(self) -> str:
            raise AssertionError

        @staticmethod
        def shared(x: int) -> int:
            return x

        @classmethod
        def of_class(cls, x: int) -> str:
            return f"{cls.__name__} {x}"

        @u.tool("find", tags=["read"], serial_group="", idempotent=True)
        async def look_up(self, q: str) -> str:
            return q

        def close(self) -> None: ...
        def drop_all(self) -> None: ...
        def _private(self) -> None: ...

    assert u.tools.names == ["crm.inherited", "crm.overridden", "crm.shared", "crm.of_class", "crm.find"]
    assert isinstance(Crm(), Crm)
    assert called(u, "crm.overridden").value == "crm"
    assert called(u, "crm.of_class", x=2).value == "Crm 2"
    assert called(u, "crm.shared", x=2).value == 2
    find = u.tools["crm.find"]
    assert find.tags == {"crm", "read"}
    assert (find.serial_group, u.tools["crm.shared"].serial_group) == ("", "crm")
    assert find.id == "acme.crm.crm_find"


@pytest.mark.req("UNI-1")
def test_a_marked_method_is_registered_once_on_the_object_with_both_sets_of_layers() -> None:
    u, passed = Universe(), list[str]()

    async def of_class(call: Any, next_h: Any) -> Any:
        passed.append("class")
        return await next_h(call)

    async def of_method(call: Any, next_h: Any) -> Any:
        passed.append("method")
        return await next_h(call)

    @u.bind(prefix="Bank__", tags=["finance"], middlewares=[of_class])
    class Bank:
        def __init__(self) -> None:
            self.sent: list[str] = []

        @u.tool(middlewares=[of_method])
        async def transfer(self, to: str) -> int:
            self.sent.append(to)
            return len(self.sent)

    assert u.tools.names == ["Bank__transfer"]
    assert [called(u, "Bank__transfer", to="x").value for _ in range(2)] == [1, 2]
    assert passed == ["class", "method"] * 2


@pytest.mark.req("UNI-1")
def test_objects_are_registered_as_they_are() -> None:
    u = Universe()

    class Shop:
        def __init__(self, city: str) -> None:
            self.city = city

        @u.tool
        def where(self) -> str:
            return self.city

    paris = u.add(Shop("Paris"), prefix="paris_")
    u.add(Shop("Rome"), prefix="rome_")

    assert paris.names == ["paris_where"]
    assert [called(u, name).value for name in u.tools.names] == ["Paris", "Rome"]
    with pytest.raises(NotATool, match=r"needs city.*u\.add"):
        u.bind()(Shop)


@pytest.mark.req("UNI-1")
def test_a_marked_method_whose_class_is_never_bound_is_missed_at_once() -> None:
    u = Universe()

    class Forgotten:
        @u.tool
        def transfer(self) -> None: ...

    for ask in (lambda: u.tools, lambda: u["x"], lambda: called(u, "transfer")):
        with pytest.raises(NotBound, match=r"Forgotten.transfer \(test_registration.py:\d+\) is a method and a tool"):
            ask()
    u.add(Forgotten())
    assert u.tools.names == ["transfer"]


@pytest.mark.req("UNI-1")
@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("quote", "quote", "Two tools are called quote"),
        ("a.b", "a_b", "would both be a_b in openai"),
        ("Quote", "quote", "would both be quote in a hub"),
        ("1", "t_1", "would both be t_1 in a hub"),
    ],
)
def test_names_that_meet_somewhere_are_refused_naming_both_places(first: str, second: str, told: str) -> None:
    u = Universe()
    u.tool(first)(nothing)

    with pytest.raises(ToolNameTaken, match=told) as caught:
        u.tool(second)(other)

    assert "nothing (test_registration.py:" in str(caught.value)
    assert "other (test_registration.py:" in str(caught.value)
    assert u.tools.names == [first]


@pytest.mark.req("UNI-1")
def test_prefixes_that_make_one_name_are_refused() -> None:
    u = Universe()

    class One:
        def __init__(self) -> None: ...
        def _find(self) -> None: ...
        def find(self) -> None: ...

    u.add(One(), prefix="crm_")
    with pytest.raises(ToolNameTaken, match="crm_find"):
        u.tool("crm_find")(nothing)


@pytest.mark.req("UNI-3")
def test_tools_are_chosen_by_expression_tag_and_set() -> None:
    u = Universe("acme.shop")
    u.tool("Bank__pay", ["finance", "write"], side_effect="Write")(nothing)
    u.tool("Bank__balance", ["finance"])(nothing)
    u.tool("weather", ["public"])(nothing)

    assert u["finance"].names == u[Prefix("Bank__")].names == ["Bank__pay", "Bank__balance"]
    assert u[Tag("finance") & ~Tag("write") | Name("weather")].names == ["Bank__balance", "weather"]
    assert u["public"] | u["write"] == u[Tag("public") | Tag("write")]
    assert u["finance"] & u["write"] == u["finance"] - u[Name("Bank__balance")] == u["write"]
    assert hash(u["write"]) == hash(u[Prefix("Bank__p")])
    assert "weather" in u["public"]
    assert u.tools["weather"] in u["public"]
    assert "weather" not in u["finance"]
    assert (len(u["nowhere"]), list(u["nowhere"])) == (0, [])
    with pytest.raises(ValueError, match="is no tag"):
        u["Not a tag"]


@pytest.mark.req("UNI-4")
def test_a_set_is_rendered_for_a_model_and_told_to_people_without_what_is_injected() -> None:
    u = Universe()

    @u.tool("quote.get", ["finance"])
    def get_quote(symbol: str, db: Annotated[str, Injected("pricing_db")]) -> float:
        """Latest price."""
        return 1.0

    for model, dialect in {"gpt-4o": "openai", "claude-sonnet-4-5": "anthropic", "mcp": "mcp", "xml": "xml"}.items():
        rendered = u["finance"].render(model)
        assert rendered.dialect == dialect
        assert list(rendered.names.values()) == ["quote.get"]
        assert "symbol" in str(rendered.payload)
        assert "db" not in str(rendered.payload)
    told = u["finance"].to_markdown()
    assert "Latest price." in told
    assert "db" not in told + repr(u["finance"]) + repr(u.tools["quote.get"])


@pytest.mark.parametrize("wrong", ["Acme", "acme.", "a.b.c", ".b", "a b"])
def test_a_universe_has_the_name_of_a_package_or_none(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no name of a Universe"):
        Universe(wrong)
    assert repr(Universe("acme.shop")) == "<Universe acme.shop>"
    assert [tool.id for tool in Universe()] == []
