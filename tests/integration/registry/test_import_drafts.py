"""Import drafts: what of a draft is refused, and who writes over whom when two correct, choose or submit at once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from access.roles import Role
from registry.imports import services as imports
from registry.imports import submissions
from registry.imports.models import Import
from registry.models import ToolVersion
from registry.problems import OwnSubmission
from registry.reviews import services as reviews
from tests.conftest import make_person
from tests.integration.registry.test_imports import data_of
from tests.support.import_sources import make_shop_document, write_json, write_operations

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("BRING-1")
def test_a_draft_that_no_hub_takes_is_refused_with_its_findings_and_kept(developer: Person) -> None:
    row = imports.import_document(
        data=write_json(make_shop_document()), wanted=["getItem", "searchItems"], by=developer.by
    )
    client = developer.client()
    [first, _] = row.drafts
    wrong = first["document"] | {"capabilities": {"net": [{"host": "other.example.com"}]}}
    draft = f"/bring/{row.wire_id}/drafts/{first['id']}"
    assert client.post(draft, {"whole": "1", "text": "{"}).status_code == 422
    assert client.post(draft, {"whole": "1", "text": json.dumps(wrong)}).status_code == 302

    answer = client.post(f"/bring/{row.wire_id}/submit")

    assert answer.status_code == 422
    assert first["id"] in answer.text
    assert "/capabilities/net" in answer.text
    assert not ToolVersion.objects.exists()  # all of them, or none
    assert len(Import.objects.get().drafts) == 2


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"safety_class": 7}, "/safety_class"),
        ({"capabilities": []}, "/capabilities"),
        ({"capabilities": None}, "/capabilities"),
        ({"capabilities": {"net": ["x"]}}, "/capabilities/net/0"),
        ({"implementation": {"kind": "mcp_stdio", "server": []}}, "/implementation"),
        ({"input_schema": {"type": "object", "properties": 5}}, "/input_schema/properties"),
        ({"version": 3}, "/version"),
    ],
)
def test_a_draft_that_nothing_can_read_is_not_kept(wrong: dict[str, Any], pointer: str, developer: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    client = developer.client()
    [first] = row.drafts
    draft = f"/bring/{row.wire_id}/drafts/{first['id']}"

    answer = client.post(draft, {"whole": "1", "text": json.dumps(first["document"] | wrong)})

    assert answer.status_code == 422
    assert pointer in answer.text
    assert Import.objects.get().drafts == [first]
    assert client.get(draft).status_code == 200
    assert client.get(f"/bring/{row.wire_id}").status_code == 200


def read_all_seen(page: str) -> list[str]:
    """What each form says of the drafts that it shows."""
    return re.findall(r'name="seen" value="(sha256:[0-9a-f]{64})"', page)


def read_seen(page: str) -> str:
    return read_all_seen(page)[0]


@pytest.mark.req("BRING-1")
def test_two_who_correct_one_draft_write_over_each_other_knowingly_only(developer: Person, operator: Person) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    draft = f"/bring/{row.wire_id}/drafts/service.shop.getitem"
    fields = {"side_effect": "Read", "safety_class": "Low", "timeout_ms": "5000"}
    mine, theirs = developer.client(), operator.client()
    shown = {"seen": read_seen(mine.get(draft).text)}

    assert theirs.post(draft, fields | shown | {"description": "Theirs."}).status_code == 302
    late = mine.post(draft, fields | shown | {"description": "Mine."})

    assert late.status_code == 422
    assert "The draft was changed after you opened it." in late.text
    assert "Mine." in late.text
    assert Import.objects.get().drafts[0]["document"]["description"] == "Theirs."
    whole = {"whole": "1", "text": json.dumps(row.drafts[0]["document"])} | shown
    assert mine.post(draft, whole).status_code == 422
    again = {"seen": read_seen(late.text), "description": "Mine."}
    assert mine.post(draft, fields | again).status_code == 302
    assert Import.objects.get().drafts[0]["document"]["description"] == "Mine."


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("mistake", "place"),
    [
        pytest.param({"description": "", "timeout_ms": "5000"}, 0, id="no description"),
        pytest.param({"description": "Mine.", "timeout_ms": "0"}, 0, id="no time"),
        pytest.param({"whole": "1", "text": "{"}, 1, id="broken JSON"),
    ],
)
def test_a_mistake_in_a_form_does_not_make_its_author_write_over_another(
    developer: Person, operator: Person, mistake: dict[str, str], place: int
) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["getItem"], by=developer.by)
    draft = f"/bring/{row.wire_id}/drafts/service.shop.getitem"
    fields = {"side_effect": "Read", "safety_class": "Low", "timeout_ms": "5000", "description": "Mine."}
    whole = {"whole": "1", "text": json.dumps(row.drafts[0]["document"])}
    mine, theirs = developer.client(), operator.client()
    shown = {"seen": read_seen(mine.get(draft).text)}
    assert theirs.post(draft, fields | shown | {"description": "Theirs."}).status_code == 302

    wrong = mine.post(draft, (fields if place == 0 else {}) | shown | mistake)
    corrected = (fields, whole)[place] | {"seen": read_all_seen(wrong.text)[place]}
    late = mine.post(draft, corrected)

    assert (wrong.status_code, late.status_code) == (422, 422)
    assert "The draft was changed after you opened it." in late.text
    assert Import.objects.get().drafts[0]["document"]["description"] == "Theirs."
    assert read_all_seen(wrong.text)[1 - place] != shown["seen"]  # the other form shows what there is now
    assert mine.post(draft, corrected | {"seen": read_all_seen(late.text)[place]}).status_code == 302


@pytest.mark.req("BRING-1")
def test_what_is_submitted_is_what_was_shown(developer: Person, operator: Person) -> None:
    """The source may be read anew, or a draft changed, while somebody looks at the page."""
    row = imports.import_document(data=write_operations(2, "Old"), group="acme.shop", wanted=["op0"], by=developer.by)
    client, page = developer.client(), f"/bring/{row.wire_id}"
    shown = {"seen": read_seen(client.get(page).text)}
    imports.import_document(data=write_operations(2, "New"), group="acme.shop", by=operator.by)

    late = client.post(f"{page}/submit", shown)

    assert late.status_code == 422
    assert "The drafts were changed after you opened this page." in late.text
    assert not ToolVersion.objects.exists()
    assert client.post(f"{page}/submit", {"seen": read_seen(late.text)}).status_code == 302
    assert "New" in ToolVersion.objects.get().view.description


@pytest.mark.req("BRING-1")
def test_who_wrote_in_a_draft_is_named_with_its_effect_and_does_not_review_it(
    developer: Person, operator: Person, tenant: Tenant
) -> None:
    row = imports.import_document(data=write_json(make_shop_document()), wanted=["searchItems"], by=developer.by)
    [draft] = row.drafts
    author = make_person(tenant, "author", Role.DEVELOPER, Role.OPERATOR)
    changed = draft["document"] | {"side_effect": "Read", "description": "Looks for items."}
    imports.edit_draft(import_id=row.pk, tool=draft["id"], document=changed, reason="It only looks.", by=author.by)

    [version] = submissions.submit_import(import_id=row.pk, by=developer.by)

    assert data_of("import.effect_chosen")["chosen_by"] == author.by.id
    with pytest.raises(OwnSubmission, match="wrote in this version"):
        reviews.check_can_review(version, by=author.by)
    reviews.check_can_review(version, by=operator.by)
