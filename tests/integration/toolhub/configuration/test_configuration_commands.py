"""Configuration commands: do the commands of a configuration say which tenants there are, when one is named that is not here?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from access import services as access
from toolhub.management.actor import MAX_NAMED

if TYPE_CHECKING:
    from pathlib import Path

    from access.models import Tenant

pytestmark = pytest.mark.django_db


def refused(command: str, *options: str) -> str:
    with pytest.raises(CommandError) as caught:
        call_command(command, *options)
    return " ".join(str(caught.value).split())


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "nowhere.yaml"
    path.write_text("format: 1\ntenant: nowhere\n")
    return str(path)


@pytest.mark.req("TOOLS-22")
def test_apply_and_export_name_the_tenants_that_there_are(tenant: Tenant, foreign_tenant: Tenant, file: str) -> None:
    sentence = "There is no tenant with the short name nowhere. The tenants here: acme, foreign."

    assert refused("apply", "-f", file) == refused("export", "--tenant", "nowhere") == sentence


@pytest.mark.req("TOOLS-22")
def test_a_hub_without_tenants_and_one_with_many_say_so(db: None, file: str) -> None:
    assert refused("apply", "-f", file).endswith("There is no tenant here yet.")

    for number in range(MAX_NAMED + 1):
        access.create_tenant(slug=f"t{number:02}", name="One of many")

    assert refused("apply", "-f", file).endswith(f"t{MAX_NAMED - 1:02} and more.")
