"""Installation pages: do the pages of installations, versions and secrets do what their services do, and keep what was typed?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.roles import Role
from registry.models import Installation, Secret, Tool
from registry.secrets import services as secrets
from registry.tools import lifecycle
from tests.conftest import make_person

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from tests.conftest import Person

ECHO = "sample.tools.echo"
FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["region"],
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"], "title": "Region", "description": "Where to ask."},
        "depth": {"type": "integer", "maximum": 5},
        "ratio": {"type": "number"},
        "loud": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
NESTED = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
}
TOKEN = [{"name": "API_TOKEN", "description": "What the service asks for."}]


def settings_of(client: Any, name: str = ECHO) -> str:
    return str(client.get(reverse("installation", args=[name])).content.decode())


def test_a_flat_schema_is_a_form_and_its_values_have_their_types(enable: Callable[..., Tool], operator: Person) -> None:
    enable(config_schema=FORM, secrets=TOKEN)
    secrets.set_secret(name="token", value="long enough", by=operator.by)
    client = operator.client()
    page = settings_of(client)
    assert "Where to ask." in page
    assert "The secret API_TOKEN is required and not set." in page

    typed = {"config:region": "eu", "config:depth": "3", "config:ratio": "0.5", "config:loud": "false"}
    typed |= {"config:tags": '["a"]', "secret:API_TOKEN": "token", "pin": "^1", "hosts": "none", "reason": "set up"}
    done = client.post(reverse("installation_configure", args=[ECHO]), typed)

    assert done.status_code == 302
    row = Installation.objects.get()
    assert row.config == {"region": "eu", "depth": 3, "ratio": 0.5, "loud": False, "tags": ["a"]}
    assert (row.secrets, row.pin, row.hosts, row.paths) == ({"API_TOKEN": "token"}, "^1", [], None)
    shown = settings_of(client)
    assert '<option value="eu" selected>' in shown
    assert "It cannot be called yet" not in shown


def test_what_is_wrong_is_shown_at_its_field_and_what_was_typed_is_kept(
    enable: Callable[..., Tool], operator: Person
) -> None:
    enable(config_schema=FORM)
    typed = {"config:region": "eu", "config:depth": "9", "config:tags": "[1]", "hosts": "a b", "reason": "my reason"}

    answer = operator.client().post(reverse("installation_configure", args=[ECHO]), typed)

    page = answer.content.decode()
    assert answer.status_code == 422
    for kept in ("my reason", 'value="9"', "[1]", "a b"):
        assert kept in page
    for field in ("config:depth", "config:tags", "hosts"):
        assert f'id="id_{field}_error"' in page
    assert Installation.objects.get().config == {}


def test_a_schema_of_another_shape_is_filled_in_as_json(enable: Callable[..., Tool], operator: Person) -> None:
    enable(config_schema=NESTED)
    client, address = operator.client(), reverse("installation_configure", args=[ECHO])

    assert client.post(address, {"config": "{", "reason": "x"}).status_code == 422
    assert client.post(address, {"config": '{"c": 1}', "reason": "x"}).status_code == 422
    assert client.post(address, {"config": '{"b": 1}', "reason": "x"}).status_code == 302
    assert Installation.objects.get().config == {"b": 1}


@pytest.mark.parametrize(("what", "state"), [("pause", "paused"), ("remove", "removed")])
def test_an_installation_is_paused_and_removed_with_a_reason(
    what: str, state: str, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()
    client, address = operator.client(), reverse("installation_change", args=[ECHO, what])

    assert client.post(address, {"reason": ""}).status_code == 422
    assert client.post(address, {"reason": "x"}).status_code == 302
    assert Installation.objects.get().state == state
    assert client.post(reverse("installation_change", args=[ECHO, "burn"]), {"reason": "x"}).status_code in (404, 409)


def test_a_shared_tool_is_found_and_installed(enable: Callable[..., Tool], operator: Person, stranger: Person) -> None:
    enable()
    client = stranger.client()
    assert ECHO not in client.get(reverse("shared_tools")).content.decode()
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)

    listed = client.get(reverse("shared_tools") + "?q=echo").content.decode()
    assert ECHO in listed
    assert "acme" in listed
    address = reverse("install", args=["acme", ECHO])
    assert client.get(address).status_code == 200
    assert client.post(address, {"reason": ""}).status_code == 422
    done = client.post(address, {"reason": "we need it"})

    assert done.headers["Location"] == reverse("installation", args=[ECHO])
    assert ECHO in client.get(reverse("installations")).content.decode()
    assert settings_of(client).count("acme") > 0
    assert client.get(reverse("tool", args=[ECHO])).status_code == 404  # it belongs to its publisher


def test_a_developer_sees_settings_and_changes_none(enable: Callable[..., Tool], developer: Person) -> None:
    enable(config_schema=FORM)
    client = developer.client()

    assert "Save settings" not in settings_of(client)
    assert client.post(reverse("installation_configure", args=[ECHO]), {"reason": "x"}).status_code == 403
    assert client.get(reverse("secrets")).status_code == 403


# Versions.


def test_a_version_is_staged_yanked_and_trusted_on_its_page(
    enable: Callable[..., Tool], tenant: Tenant, operator: Person
) -> None:
    tool = enable(requires_sandbox=False)
    assert tool.current is not None
    owner = make_person(tenant, "ottilie", Role.OWNER)
    page, pk = reverse("version", args=[tool.current.pk]), [tool.current.pk]
    assert "Acme" in owner.client().get(page).content.decode()

    assert operator.client().post(reverse("version_trust", args=pk), {"reason": "x"}).status_code == 403
    assert owner.client().post(reverse("version_trust", args=pk), {"reason": "x"}).status_code == 302
    assert "trusted" in owner.client().get(page).content.decode()
    assert owner.client().post(reverse("version_trust", args=pk), {"reason": "x", "stop": "1"}).status_code == 302

    client = operator.client()
    wrong = client.post(reverse("version_stage", args=pk), {"tenants": "nobody", "reason": "my reason"})
    assert wrong.status_code == 422
    assert "my reason" in wrong.content.decode()
    assert client.post(reverse("version_stage", args=pk), {"tenants": "acme", "reason": "x"}).status_code == 302
    assert client.post(reverse("version_yank", args=pk), {"confirm": "1.0", "reason": "x"}).status_code == 422
    assert client.post(reverse("version_yank", args=pk), {"confirm": "1.0.0", "reason": "it leaks"}).status_code == 302
    shown = client.get(page).content.decode()
    assert "it leaks" in shown
    assert "Yanked" in client.get(reverse("tool_versions", args=[ECHO])).content.decode()
    assert "was yanked" in client.get(reverse("tool", args=[ECHO])).content.decode()
    assert "withdrawn by the publisher" in settings_of(client)


def test_a_tool_is_shared_on_its_page_and_taken_back(enable: Callable[..., Tool], operator: Person) -> None:
    enable()
    client, address = operator.client(), reverse("tool_share", args=[ECHO])

    assert client.post(address, {"reason": ""}).status_code == 422
    client.post(address, {"reason": "x"})
    assert Tool.objects.get().shared
    client.post(address, {"reason": "x", "stop": "1"})
    assert not Tool.objects.get().shared


# Secrets.


def test_a_secret_goes_in_and_never_comes_out(operator: Person) -> None:
    client = operator.client()

    short = client.post(reverse("secrets"), {"name": "shop.token", "value": "s3cret"})
    assert short.status_code == 422
    assert "s3cret" not in short.content.decode()
    assert "shop.token" in short.content.decode()
    done = client.post(reverse("secrets"), {"name": "shop.token", "value": "a-long-s3cret"}, follow=True)

    assert "a-long-s3cret" not in done.content.decode()
    assert Secret.objects.get().number == 1
    client.post(reverse("secrets"), {"name": "shop.token", "value": "another-s3cret"})
    assert Secret.objects.get().number == 2
    assert client.post(reverse("secret_remove", args=["shop.token"])).status_code == 302
    assert not Secret.objects.exists()


def test_a_secret_in_use_has_no_button_to_remove_it(enable: Callable[..., Tool], operator: Person) -> None:
    enable(secrets=TOKEN)
    secrets.set_secret(name="token", value="long enough", by=operator.by)
    client = operator.client()
    assert reverse("secret_remove", args=["token"]) in client.get(reverse("secrets")).content.decode()

    client.post(reverse("installation_configure", args=[ECHO]), {"secret:API_TOKEN": "token", "reason": "x"})

    page = client.get(reverse("secrets")).content.decode()
    assert reverse("secret_remove", args=["token"]) not in page
    assert ECHO in page
    assert client.post(reverse("secret_remove", args=["token"])).status_code == 409


def test_a_tool_that_is_installed_is_tried_from_its_page(enable: Callable[..., Tool], operator: Person) -> None:
    enable()

    assert reverse("tool_try", args=[ECHO]) in settings_of(operator.client())
