"""Imports again: what is brought when a document or a list that was brought before is read anew?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from registry.imports import drafts as import_drafts
from registry.imports import services as imports
from registry.imports import submissions
from registry.imports.problems import SourceUnfit
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.versions import services as registry
from tests.support.import_sources import import_list, list_tools, make_shop_document, write_json, write_operations

if TYPE_CHECKING:
    from kernel.principal import Principal
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("BRING-1")
def test_a_second_document_proposes_versions_only_of_what_changed(developer: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), by=developer.by)
    imports.choose_tools(import_id=row.pk, names=["getItem", "searchItems"], by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)
    newer = make_shop_document()
    newer["paths"]["/items/{id}"]["get"]["summary"] = "Gives an item and its price"
    del newer["paths"]["/search"]

    row = imports.import_document(data=write_json(newer), by=developer.by)

    [draft] = row.drafts
    assert (draft["name"], draft["base"], draft["document"]["version"]) == ("getItem", "1.0.0", "1.0.1")
    assert draft["changes"]
    assert imports.find_gone(row) == ["searchItems"]
    page = developer.client().get(f"/bring/{row.wire_id}").text
    assert "These were brought and are not there any more" in page
    submissions.submit_import(import_id=row.pk, by=developer.by)
    assert imports.import_document(data=write_json(newer), by=developer.by).drafts == []


def refuse_newest(by: Principal) -> None:
    version = ToolVersion.objects.latest("pk")
    reviews.review_version(version_id=version.pk, decision=Decision.REFUSE, note="Not so.", by=by)


@pytest.mark.req("BRING-1")
def test_a_refused_version_hides_no_change_of_its_source(developer: Person, operator: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)
    newer = make_shop_document()
    newer["paths"]["/items/{id}"]["get"]["summary"] = "Gives an item and its price"
    row = imports.import_document(data=write_json(newer), by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)
    refuse_newest(operator.by)

    row = imports.import_document(data=write_json(newer), by=developer.by)

    [draft] = row.drafts
    assert (draft["base"], draft["document"]["version"]) == ("1.0.0", "1.0.2")
    assert draft["document"]["display_name"] == "Gives an item and its price"
    assert "/display_name" in [each["pointer"] for each in draft["changes"]]


@pytest.mark.req("BRING-1")
def test_a_refused_version_hides_no_choice_beside_the_document(developer: Person, operator: Person) -> None:
    first = imports.import_document(
        data=write_json(make_shop_document()), wanted=["getItem"], secrets=["A_TOKEN"], by=developer.by
    )
    submissions.submit_import(import_id=first.pk, by=developer.by)
    again = imports.import_document(data=write_json(make_shop_document()), secrets=["B_TOKEN"], by=developer.by)
    submissions.submit_import(import_id=again.pk, by=developer.by)
    refuse_newest(operator.by)

    row = imports.import_document(data=write_json(make_shop_document()), secrets=["B_TOKEN"], by=developer.by)

    [draft] = row.drafts
    assert (draft["base"], draft["document"]["secrets"][0]["name"]) == ("1.0.0", "B_TOKEN")


@pytest.mark.req("BRING-1")
def test_what_a_person_published_by_another_way_stays_when_the_document_is_read_again(developer: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    [first] = submissions.submit_import(import_id=row.pk, by=developer.by)
    by_hand = first.manifest | {"version": "1.0.7", "description": "Gives an item. Ask for one at a time."}
    registry.submit_version(document=by_hand, by=developer.by)
    newer = make_shop_document()
    of_item = newer["paths"]["/items/{id}"]["get"]
    language = {"name": "language", "in": "query", "schema": {"type": "string"}}
    of_item["parameters"] = [*of_item.get("parameters", []), language]

    row = imports.import_document(data=write_json(newer), by=developer.by)

    [draft] = row.drafts
    assert (draft["base"], draft["document"]["version"]) == ("1.0.7", "1.1.0")
    assert "language" in draft["document"]["input_schema"]["properties"]
    assert draft["document"]["description"] == "Gives an item. Ask for one at a time."


@pytest.mark.req("BRING-1")
def test_what_was_kept_of_a_document_before_versions_were_told_apart_is_read(developer: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)
    row.refresh_from_db()
    [kept] = row.made["tools"]["getItem"]
    row.made = {"choices": kept["choices"], "operations": {"getItem": kept["made"]}}
    row.save(update_fields=["made"])
    newer = make_shop_document()
    newer["paths"]["/items/{id}"]["get"]["summary"] = "Gives an item and its price"

    row = imports.import_document(data=write_json(newer), by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)

    row.refresh_from_db()
    assert [each["version"] for each in row.made["tools"]["getItem"]] == ["", "1.0.1"]
    assert "operations" not in row.made


@pytest.mark.req("BRING-1")
def test_another_service_with_the_same_names_is_seen_to_be_another(developer: Person) -> None:
    """In a group of its own it has tools of its own; in the same group its operation would be asked in place of the first."""
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    submissions.submit_import(import_id=row.pk, by=developer.by)
    other = make_shop_document() | {"servers": [{"url": "https://other.example.com"}]}

    apart = imports.import_document(data=write_json(other), group="service.other", wanted=["getItem"], by=developer.by)
    together = imports.import_document(data=write_json(other), by=developer.by)

    [own], [mixed] = apart.drafts, together.drafts
    assert (own["id"], own["base"], own["document"]["version"]) == ("service.other.getitem", "", "1.0.0")
    assert (mixed["id"], mixed["base"], mixed["document"]["version"]) == ("service.shop.getitem", "1.0.0", "2.0.0")
    assert "operation.reach_changed" in [each["kind"] for each in mixed["changes"]]


@pytest.mark.req("BRING-1")
def test_a_document_of_which_more_than_fifty_were_brought_is_read_again_in_parts(developer: Person) -> None:
    row = imports.import_document(data=write_operations(52, "Old"), by=developer.by)
    for part in (range(40), range(40, 52)):
        imports.choose_tools(import_id=row.pk, names=[f"op{n}" for n in part], by=developer.by)
        submissions.submit_import(import_id=row.pk, by=developer.by)
    assert imports.import_document(data=write_operations(52, "Old"), by=developer.by).drafts == []

    row = imports.import_document(data=write_operations(52, "New"), by=developer.by)

    assert (len(row.drafts), row.unproposed) == (50, 2)
    page = developer.client().get(f"/bring/{row.wire_id}").text
    assert "2 more tools are otherwise than they were brought" in page
    submissions.submit_import(import_id=row.pk, by=developer.by)
    row = imports.import_document(data=write_operations(52, "New"), by=developer.by)
    assert (len(row.drafts), row.unproposed) == (2, 0)


@pytest.mark.req("TOOLS-16")
def test_a_server_of_which_more_than_fifty_were_brought_is_read_again_in_parts(developer: Person) -> None:
    names = [f"t{n}" for n in range(52)]
    for part in (names[:40], names[40:]):
        row = import_list(list_tools(*names), group="big.shop", wanted=part, by=developer.by)
        submissions.submit_import(import_id=row.pk, by=developer.by)

    row = import_list(list_tools(*names, description="Now."), group="big.shop", wanted=[], by=developer.by)

    assert (len(row.drafts), row.unproposed) == (50, 2)


@pytest.mark.req("TOOLS-16")
def test_tools_of_a_longer_group_are_no_tools_of_a_shorter_one(developer: Person) -> None:
    inner = import_list(list_tools("look", "buy"), group="acme.shop", wanted=["look", "buy"], by=developer.by)
    submissions.submit_import(import_id=inner.pk, by=developer.by)

    outer = import_list(list_tools("look"), group="acme", wanted=["look"], by=developer.by)

    [draft] = outer.drafts
    assert (draft["id"], draft["base"], draft["changes"]) == ("acme.look", "", [])
    assert imports.find_gone(outer) == []
    with pytest.raises(SourceUnfit, match=r"was brought as acme\.shop\.look"):
        base = import_drafts.find_brought(inner)["look"]
        import_drafts.settle_draft(outer, "look", draft["document"], base, draft["made"], [], None)
