"""Model pages: does a person find in the console what is known of a model, and connect, change and stop it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from access.halts.services import throw_halt
from access.models import Reach
from registry.models import Installation, InstallationState, Tool
from tests.support.connected_models import (
    MODEL,
    PROVIDER,
    connect_scripted_model,
    connect_scripted_provider,
    set_script_prices,
)

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
TERMS = {
    "model": "script",
    "operation": "chat",
    "default_output_tokens": "512",
    "unpriced": "count",
    "caller_tools": "refuse",
    "reason": "for a test",
}


@pytest.mark.req("LLM-10")
def test_a_model_shows_its_price_in_force_or_that_it_has_none(operator: Person, developer: Person) -> None:
    connect_scripted_model(operator.by, window_tokens=8192, features={"tools": "passed"})
    client = developer.client()
    assert "unpriced" in client.get("/models").content.decode()

    set_script_prices(operator.by, input="2.10", output="8.40")

    for path in ("/models", f"/models/{MODEL}"):
        page = client.get(path).content.decode()
        assert MODEL in page
        assert "8,192" in page
        assert "$2.1" in page
        assert "unpriced" not in page


@pytest.mark.req("LLM-10")
def test_only_who_manages_models_sees_how_to_change_one(operator: Person, auditor: Person) -> None:
    connect_scripted_model(operator.by)

    assert f"/models/{MODEL}/edit" in operator.client().get(f"/models/{MODEL}").content.decode()
    page = auditor.client().get(f"/models/{MODEL}").content.decode()
    assert f"/models/{MODEL}/edit" not in page
    assert "<form" not in page.split("<main", 1)[1].split("</main", 1)[0]


@pytest.mark.req("LLM-10")
def test_a_model_is_connected_and_changed_by_a_form(operator: Person) -> None:
    connect_scripted_provider(operator.by)
    client = operator.client()

    made = client.post("/models/new", {"provider": PROVIDER, "alias": "main", **TERMS, "feature:tools": "passed"})
    changed = client.post(f"/models/{MODEL}/edit", TERMS | {"model": "script-2", "window_tokens": "4096"})

    assert (made.status_code, changed.status_code) == (302, 302)
    tool = Tool.objects.get(name=MODEL)
    assert tool.current is not None
    part = tool.current.view.model
    assert part is not None
    assert (tool.current.version, part.name, part.window_tokens) == ("1.0.1", "script-2", 4096)
    assert part.features == {}


@pytest.mark.req("LLM-10")
def test_a_form_shows_what_is_set_now(operator: Person) -> None:
    connect_scripted_model(operator.by, window_tokens=4096, features={"seed": "passed", "tools": "refused"})

    form = operator.client().get(f"/models/{MODEL}/edit").context["form"]

    assert form["window_tokens"].value() == 4096
    assert (form["feature:seed"].value(), form["feature:tools"].value()) == ("passed", "refused")


@pytest.mark.req("LLM-10")
def test_what_is_wrong_is_said_at_its_field(operator: Person) -> None:
    connect_scripted_provider(operator.by)
    said = {"provider": PROVIDER, "alias": "Main", **TERMS, "fallbacks": "model.script.none"}

    answer = operator.client().post("/models/new", said)
    assert (answer.status_code, set(answer.context["form"].errors)) == (422, {"alias"})

    answer = operator.client().post("/models/new", said | {"alias": "main"})
    assert (answer.status_code, set(answer.context["form"].errors)) == (422, {"fallbacks"})
    assert not Tool.objects.exists()


@pytest.mark.req("LLM-10")
def test_a_model_is_paused_resumed_and_removed_with_a_reason(operator: Person) -> None:
    connect_scripted_model(operator.by)
    client = operator.client()

    def change(what: str, reason: str = "for a test") -> int:
        return client.post(f"/models/{MODEL}/{what}", {"reason": reason}).status_code

    assert change("pause", "") == 422
    assert change("pause") == 302
    assert Installation.objects.get().state == InstallationState.PAUSED
    assert change("resume") == 302
    assert change("nonsense") == 404
    assert change("remove") == 302
    assert client.get(f"/models/{MODEL}").status_code == 404


@pytest.mark.req("LLM-10")
def test_a_model_with_a_kill_switch_is_shown_as_stopped(operator: Person) -> None:
    connect_scripted_model(operator.by)
    throw_halt(reach=Reach.TOOL, target=MODEL, reason="for a test", by=operator.by)

    assert "Stopped" in operator.client().get("/models").content.decode()
    assert "Stopped" in operator.client().get(f"/models/{MODEL}").content.decode()


@pytest.mark.req("LLM-10")
def test_models_of_others_are_not_found(operator: Person, stranger: Person) -> None:
    connect_scripted_model(operator.by)

    assert MODEL not in stranger.client().get("/models").content.decode()
    assert stranger.client().get(f"/models/{MODEL}").status_code == 404
