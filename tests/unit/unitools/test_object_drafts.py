"""Object drafts: do source file and manifest say what the object says, and does a second run keep what a person wrote?"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from typing import Any

import pytest

from registry.versions.manifest_checks import validate_document
from unitools.brought_objects import PINNED
from unitools.brought_tools import CannotBring
from unitools.checks import find_entry_differences
from unitools.manifest import Manifest
from unitools.mcp_listings import compute_json_digest
from unitools.object_descriptions import ObjectDescription
from unitools.object_drafts import BroughtObject, ObjectChoices, ObjectDraft, build_source, draft_objects
from unitools.packages import compute_files_digest

GROUP = "python.shop"
NEEDS = ["anyio==4.16.0", "langchain-core==1.8.3", "pydantic==2.14.4"]
ORIGIN = {"package": "langchain-core", "version": "1.8.3"}
OWN = {"source_digest": "sha256:" + "b" * 64}
INPUT = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


def brought(name: str = "Find-It", *, origin: dict[str, str] | None = None, **changes: Any) -> BroughtObject:
    said = ObjectDescription("langchain", name, "Finds it.", INPUT, {"type": "string"})
    said = replace(said, **changes)
    return BroughtObject("langchain_shop:Find", said.to_json(), said.digest, is_class=True, origin=origin or ORIGIN)


def draft(found: BroughtObject, **more: Any) -> ObjectDraft:
    choices = {found.reference: more.pop("choices", ObjectChoices())}
    return draft_objects([found], GROUP, choices, more.pop("needs", NEEDS), **more)[0]


def made(one: ObjectDraft) -> dict[str, Any]:
    """What the next run is told of this one."""
    return {"langchain_shop:Find": {"made": one.made, "source": one.made_source}}


def errors_of(document: dict[str, Any]) -> list[str]:
    return [each.message for each in validate_document(document) if each.severity == "error"]


@pytest.mark.req("BRING-4")
def test_a_draft_is_a_manifest_that_a_hub_takes_and_a_source_file_that_python_reads() -> None:
    choices = ObjectChoices("Read", ("SHOP_KEY",), ("api.example.org",), {"REGION": "eu'\n"})
    found = draft(brought(), choices=choices)

    assert errors_of(found.document) == []
    assert (found.document["id"], found.document["side_effect"]) == ("python.shop.find_it", "Read")
    assert found.document["implementation"] == {"module": "python_shop.find_it", "entry": "run"}
    assert found.document["capabilities"] == {"net": [{"host": "api.example.org"}]}
    assert [(each["name"], each["hosts"]) for each in found.document["secrets"]] == [("SHOP_KEY", ["api.example.org"])]
    assert {each.name for each in ast.parse(found.source).body if isinstance(each, ast.FunctionDef)} == {
        "build",
        "run",
        "describe",
    }
    assert 'os.environ["SHOP_KEY"] = runtime.secret("SHOP_KEY")' in found.source
    assert 'os.environ["REGION"] = "eu' in found.source or "'REGION'" not in found.source


@pytest.mark.req("BRING-4")
def test_without_a_word_a_tool_is_taken_to_write_and_reaches_nothing() -> None:
    found = draft(brought()).document

    assert (found["side_effect"], found["safety_class"]) == ("Write", "Medium")
    assert "capabilities" not in found
    assert "secrets" not in found


@pytest.mark.req("BRING-4")
def test_a_module_is_imported_ahead_only_where_nothing_of_a_call_decides_what_it_does() -> None:
    ahead = build_source(replace(brought(), is_ahead=True), ObjectChoices())
    later = build_source(brought(), ObjectChoices())

    assert "import langchain_shop as brought" in ahead
    assert "return brought.Find()" in ahead
    assert "import langchain_shop" not in later
    assert 'return load_object("langchain_shop:Find")()' in later


@pytest.mark.req("BRING-4")
def test_what_a_model_must_not_give_has_to_come_from_somewhere() -> None:
    asks = brought(injected={"user": {"type": "string"}})

    with pytest.raises(CannotBring, match=r"--inject user=config\.user"):
        draft(asks)
    with pytest.raises(CannotBring, match="no model may give"):
        draft(asks, choices=ObjectChoices(injected={"user": "call.secrets"}))
    for key, said in {
        "config.who": 'runtime.config()["who"]',
        "secret.WHO": 'runtime.secret("WHO")',
        "call.session_id": "runtime.current_call().session_id",
    }.items():
        found = draft(asks, choices=ObjectChoices(injected={"user": key}))
        assert f'injected={{"user": {said}}}' in found.source
        assert errors_of(found.document) == []
    assert draft(asks, choices=ObjectChoices(injected={"user": "config.who"})).document["config_schema"] == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"who": {"type": "string"}},
        "required": ["who"],
    }


@pytest.mark.req("BRING-4")
def test_a_secret_that_a_tenant_may_do_without_is_left_out_of_the_environment() -> None:
    found = draft(brought(env_vars=[{"name": "shop_key", "description": "Of the shop.", "required": False}]))

    assert found.document["secrets"] == [{"name": "SHOP_KEY", "description": "Of the shop.", "required": False}]
    assert "with suppress(LookupError)" in found.source
    assert 'os.environ["shop_key"] = runtime.secret("SHOP_KEY")' in found.source
    assert errors_of(found.document) == []


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"description": "Find\u200b it."}, r"U\+200B"),
        ({"description": "x" * 4001}, "4,001 characters"),
        ({"name": "F\u202eind"}, r"U\+202E"),
        ({"input_schema": {"type": "object", "properties": {"a\u2060": {"type": "string"}}}}, r"U\+2060"),
        ({"name": ""}, "has no name"),
        ({"name": "x" * 200}, "No manifest can be made"),
    ],
)
def test_texts_of_others_are_taken_as_they_can_be_seen_or_not_at_all(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotBring, match=why):
        draft(brought(**changes))


@pytest.mark.req("BRING-4")
def test_nothing_that_an_object_declares_becomes_code() -> None:
    name = 'X"] = 1; import os; os.environ["Y'

    with pytest.raises(CannotBring, match="no name of the environment"):
        draft(brought(env_vars=[{"name": name, "description": "", "required": True}]))
    with pytest.raises(CannotBring, match="no name of a parameter"):
        draft(brought(injected={name: {}}), choices=ObjectChoices(injected={name: "config.user"}))


@pytest.mark.req("BRING-4")
def test_the_reviewer_is_told_where_a_manifest_says_otherwise_than_the_object() -> None:
    one = draft(brought())
    pinned = {"objects": {"langchain_shop:Find": {"pinned": {name: brought().description[name] for name in PINNED}}}}
    place = "python_shop/as_brought.json"

    def find(data: Any, **changes: Any) -> list[str]:
        manifest = Manifest(one.document | changes)
        return [each.pointer for each in find_entry_differences(manifest, {place: json.dumps(data).encode()})]

    assert find(pinned) == []
    assert find(pinned, description="My words.", output_schema={}) == ["/description", "/output_schema"]
    lost: list[Any] = [{}, {"objects": []}, {"objects": {"langchain_shop:Find": {"pinned": {}}}}]
    for gone in lost:
        assert find(gone) == ["/origin"]


@pytest.mark.req("BRING-4")
def test_the_reviewer_is_told_where_other_modules_travel_than_were_brought() -> None:
    place = "python_shop/source"
    sources = {f"{place}/langchain_shop/__init__.py": b"", f"{place}/langchain_shop/parts.py": b"A = 1"}
    digest = compute_files_digest((name.removeprefix(f"{place}/"), data) for name, data in sources.items())
    pinned = {name: brought().description[name] for name in PINNED}
    record = {
        "python_shop/as_brought.json": json.dumps({"objects": {"langchain_shop:Find": {"pinned": pinned}}}).encode()
    }

    def find(one: ObjectDraft, files: dict[str, bytes]) -> list[str]:
        return [each.message for each in find_entry_differences(Manifest(one.document), record | files)]

    own = draft(brought(origin={"source_digest": digest}))
    changed = sources | {f"{place}/langchain_shop/parts.py": b"A = 2"}
    assert find(own, sources | {f"{place}/another.py": b"", "python_shop/langchain_shop.py": b""}) == []
    assert [("source_digest" in each) for each in find(own, changed)] == [True]
    assert [("source_digest" in each) for each in find(own, {})] == [True]
    assert find(draft(brought()), {}) == []
    assert [("travels along" in each) for each in find(draft(brought()), sources)] == [True]


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize("pinned", ["x", [], 1, None])
def test_a_record_that_was_written_by_hand_is_told_and_ends_nothing(pinned: Any) -> None:
    found = draft(brought()).document
    origin = found["origin"] | {"object_digest": compute_json_digest(pinned)}
    files = {
        "python_shop/as_brought.json": json.dumps({"objects": {"langchain_shop:Find": {"pinned": pinned}}}).encode()
    }

    assert [each.pointer for each in find_entry_differences(Manifest(found | {"origin": origin}), files)] == ["/origin"]


@pytest.mark.req("BRING-4")
def test_names_that_lead_to_one_name_are_refused_with_both() -> None:
    other = replace(brought("find.it"), reference="langchain_shop:Other")

    with pytest.raises(CannotBring, match="langchain_shop:Find and langchain_shop:Other would both be"):
        draft_objects([brought(), other], GROUP, {}, NEEDS)


@pytest.mark.req("BRING-4")
def test_a_second_run_keeps_what_a_person_has_changed_and_shows_what_is_new() -> None:
    first = draft(brought())
    mine = first.document | {
        "side_effect": "Read",
        "safety_class": "Low",
        "description": "My words.",
        "timeout_ms": 5000,
    }
    mine["dependencies"] = [*NEEDS, "requests==2.34.2"]
    before = {"existing": [mine], "sources": {mine["id"]: first.source}, "earlier": made(first)}

    same = draft(brought(), **before)
    newer = draft(
        brought(origin=ORIGIN | {"version": "1.9.0"}), needs=[*NEEDS[:1], "langchain-core==1.9.0", *NEEDS[2:]], **before
    )
    wider = INPUT | {
        "properties": {"word": {"type": "string"}, "more": {"type": "string"}},
        "required": ["word", "more"],
    }
    breaks = draft(brought(input_schema=wider, description="Other words."), **before)

    assert (same.document, same.changes) == (mine, [])
    assert (newer.document["version"], newer.document["description"]) == ("1.0.1", "My words.")
    assert newer.document["dependencies"] == ["anyio==4.16.0", "langchain-core==1.9.0", NEEDS[2], "requests==2.34.2"]
    assert {"dependencies.changed", "origin.object_version_changed"} == {each.kind for each in newer.changes or ()}
    assert (breaks.document["version"], breaks.document["side_effect"]) == ("2.0.0", "Read")
    assert breaks.document["description"] == "Other words."
    assert "origin.object_description_changed" in {each.kind for each in breaks.changes or ()}


@pytest.mark.req("BRING-4")
def test_a_source_file_that_a_person_wrote_is_left_and_what_is_made_otherwise_is_shown() -> None:
    first = draft(brought())
    mine = first.source.replace("return load_object", "return  load_object")
    before = {"existing": [first.document], "earlier": made(first)}
    choices = ObjectChoices(secrets=("SHOP_KEY",))

    kept = draft(brought(), choices=choices, sources={first.document["id"]: mine}, **before)
    taken = draft(brought(), choices=choices, sources={first.document["id"]: first.source}, **before)
    quiet = draft(brought(), sources={first.document["id"]: mine}, **before)

    assert kept.source == mine
    assert '+    os.environ["SHOP_KEY"] = runtime.secret("SHOP_KEY")' in kept.source_difference
    assert (taken.source_difference, 'runtime.secret("SHOP_KEY")' in taken.source) == ("", True)
    assert (quiet.source, quiet.source_difference, quiet.document["version"]) == (mine, "", "1.0.0")


@pytest.mark.req("BRING-4")
def test_a_manifest_of_another_object_is_not_written_over() -> None:
    first = draft(brought()).document

    with pytest.raises(CannotBring, match="brought from another object"):
        draft(replace(brought(), reference="langchain_shop:Other"), existing=[first])
