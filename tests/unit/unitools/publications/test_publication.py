"""Publication: does a Universe become manifests that a hub takes, and is what cannot be had there refused with a sentence?"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest

from unitools import Injected, Universe
from unitools.manifest import Manifest, manifest_schema
from unitools.publisher import build_publication
from unitools.universe_loader import CannotLoad, LoadedUniverse, load_universe

SHAPES = Path(__file__).resolve().parents[3] / "universes" / "shapes.py"
JUDGE = jsonschema.Draft202012Validator(manifest_schema(), format_checker=jsonschema.FormatChecker())


def made(universe: Universe, **names: str) -> Any:
    return build_publication(LoadedUniverse(universe, "u", ("tools",), {"tools.py": b""}), **names)


def one(universe: Universe) -> dict[str, Any]:
    publication = made(universe)
    assert publication.errors == (), publication.findings
    (manifest,) = publication.manifests
    return manifest  # type: ignore[no-any-return]


@pytest.fixture
def u() -> Universe:
    return Universe("acme.tills", version="1.2.3")


@pytest.mark.req("UNI-2")
def test_every_manifest_is_valid_and_leads_back_to_the_author_s_name() -> None:
    publication = build_publication(load_universe(SHAPES))

    assert publication.errors == ()
    assert [list(JUDGE.iter_errors(each)) for each in publication.manifests] == [[]] * 9
    assert publication.names["acme.shapes.order__make"] == "Order__make"
    assert {Manifest(each).version for each in publication.manifests} == {"1.0.0"}
    assert [each["id"] for each in publication.manifests] == list(publication.names)


@pytest.mark.req("UNI-2")
def test_what_the_author_says_of_effects_stands_in_the_manifest(u: Universe) -> None:
    @u.tool("Till.open", tags=["finance"], side_effect="Write", idempotent=True, safety_class="High", timeout=2.5)
    def open_till(amount: int) -> bool:
        """Open the till."""
        return bool(amount)

    manifest = one(u)

    assert manifest["id"] == "acme.tills.till_open"
    assert manifest["display_name"] == "Till.open"
    assert manifest["tags"] == ["finance"]
    assert (manifest["side_effect"], manifest["idempotency"], manifest["safety_class"]) == ("Write", "keyed", "High")
    assert manifest["timeout_ms"] == 2500
    assert manifest["input_schema"]["required"] == ["amount"]
    assert manifest["output_schema"] == {"type": "boolean"}
    assert {each.partition("==")[0] for each in manifest["dependencies"]} == {"anyio", "pydantic"}


@pytest.mark.parametrize(
    ("said", "effect", "safety"),
    [
        ({}, "None", "Low"),
        ({"destructive": True}, "Write", "Medium"),
        ({"manifest": {"capabilities": {"net": [{"host": "api.example.org"}]}}}, "Network", "Low"),
        ({"manifest": {"capabilities": {"proc": ["/bin/x"], "net": [{"host": "a.example"}]}}}, "Process", "Medium"),
        ({"side_effect": "Read"}, "Read", "Low"),
    ],
)
def test_who_names_no_effect_has_the_gravest_that_the_capabilities_allow(
    u: Universe, said: Any, effect: str, safety: str
) -> None:
    u.tool(**said)(does)

    view = Manifest(one(u))

    assert (view.side_effect, view.safety_class) == (effect, safety)


@pytest.mark.req("UNI-2", "UNI-7")
def test_what_is_injected_is_asked_of_the_tenant_and_shown_to_no_model(u: Universe) -> None:
    @u.tool(manifest={"config_schema": {"type": "object", "properties": {"shop": {"type": "string"}}}})
    def pays(
        amount: int,
        rate: Annotated[float, Injected("config.rate")],
        key: Annotated[str, Injected("secret.BANK_KEY")],
        shop: Annotated[str, Injected("shop")],
        call: Annotated[Any, Injected("call")],
        zone: Annotated[str, Injected("call.timezone")],
        limit: Annotated[int, Injected("config.limit")] = 5,
    ) -> str:
        """Pay."""
        return f"{amount}{rate}{key}{shop}{call}{zone}{limit}"

    manifest = one(u)

    config = manifest["config_schema"]
    assert list(manifest["input_schema"]["properties"]) == ["amount"]
    assert set(config["properties"]) == {"shop", "rate", "limit"}
    assert config["properties"]["rate"] == {"type": "number"}
    assert config["required"] == ["rate"]
    assert manifest["secrets"] == [{"name": "BANK_KEY", "description": "Given to pays as key.", "required": True}]


@pytest.mark.req("UNI-2")
def test_what_nobody_gives_in_a_hub_is_refused_with_what_to_do(u: Universe) -> None:
    @u.tool()
    def balance(user: Annotated[str, Injected("uid")], rate: Annotated[float, Injected("rates")] = 1.0) -> str:
        """Tell the balance."""
        return f"{user}{rate}"

    publication = made(u)

    (error,) = publication.errors
    assert error.tool == "balance"
    assert "Nobody gives 'uid' in a hub" in error.message
    assert "Injected('config.user')" in error.message
    (warning,) = [each for each in publication.findings if each.severity == "warning"]
    assert "always has its default" in warning.message


def test_what_the_universe_provides_is_there_in_a_hub_too(u: Universe) -> None:
    u.provide("db", object())

    @u.tool()
    def reads(db: Annotated[Any, Injected("db")]) -> None:
        """Read."""

    assert made(u).errors == ()


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"manifest": {"input_schema": {}}}, "/input_schema"),
        ({"manifest": {"consent": {"required": "yes"}}}, "/consent/required"),
        ({"manifest": {"colour": 1}}, "/colour"),
        ({"timeout": 3600}, "/timeout_ms"),
        ({"description": ""}, "/description"),
    ],
)
def test_what_a_hub_would_refuse_is_found_on_the_author_s_machine(u: Universe, said: Any, pointer: str) -> None:
    u.tool(**said)(does)

    assert pointer in {each.pointer for each in made(u).errors}


def test_a_universe_without_a_name_or_version_is_not_published() -> None:
    u = Universe()
    u.tool(print_nothing)

    with pytest.raises(ValueError, match=r"group\.package"):
        made(u)
    assert [each.pointer for each in made(u, group="acme.tills").errors] == ["/version"]
    assert made(u, group="acme.tills", version="1.0.0").errors == ()


def does() -> None:
    """Do it."""


def print_nothing() -> None:
    """Print nothing."""


def test_the_generated_module_is_python_and_has_a_function_for_each_tool(u: Universe) -> None:
    u.tool("import")(print_nothing)
    u.tool("say.x")(print_nothing)

    files = made(u).files
    tree = ast.parse(files["acme_tills/unitools_entries.py"])

    assert [node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)] == ["tool_import", "tool_say_x"]
    assert set(files) == {"acme_tills/__init__.py", "acme_tills/tools.py", "acme_tills/unitools_entries.py"}


@pytest.mark.req("UNI-3")
def test_a_toolset_gives_the_manifests_of_its_tools(u: Universe) -> None:
    u.tool("a", tags=["x"])(print_nothing)
    u.tool("b")(print_nothing)

    assert [each["id"] for each in u["x"].manifest()] == ["acme.tills.a"]
    assert [each["version"] for each in (u["x"] | u.tools).manifest()] == ["1.2.3", "1.2.3"]
    with pytest.raises(ValueError, match="no name for tools"):
        Universe().add(Shop()).manifest()


class Shop:
    def sell(self) -> None:
        """Sell."""


def test_a_file_inside_a_package_brings_the_whole_package(tmp_path: Path) -> None:
    package = tmp_path / "shop_of_tests"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep" / "__init__.py").write_text("PRICE = 3\n")
    (package / "deep" / "till.py").write_text(
        "from unitools import Universe\nfrom . import PRICE\nu = Universe('acme.shop', version='1.0.0')\n"
        "@u.tool\ndef price() -> int:\n    '''Tell the price.'''\n    return PRICE\n"
    )

    publication = build_publication(load_universe(package / "deep" / "till.py"))

    assert publication.errors == ()
    assert publication.manifests[0]["implementation"] == {
        "module": "shop_of_tests.unitools_entries",
        "entry": "tool_price",
    }
    assert "shop_of_tests/deep/till.py" in publication.files
    assert (
        b"from shop_of_tests.deep.till import u as _universe" in publication.files["shop_of_tests/unitools_entries.py"]
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "has none"),
        ("import nothing_of_this_name\n", "cannot be imported"),
        ("from unitools import Universe\na = Universe()\nb = Universe()\n", "has a, b"),
    ],
)
def test_a_file_that_holds_no_one_universe_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "some_tools.py").write_text(text)

    with pytest.raises(CannotLoad, match=says):
        load_universe(tmp_path / "some_tools.py")


def test_of_several_universes_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "two_of_them.py").write_text(
        "from unitools import Universe\na = Universe('x.a')\nb = Universe('x.b')\n"
    )

    assert load_universe(tmp_path / "two_of_them.py", "b").universe.name == "x.b"
    for odd in (tmp_path / "none.py", tmp_path, tmp_path / "two_of_them.txt"):
        with pytest.raises(CannotLoad):
            load_universe(odd)
