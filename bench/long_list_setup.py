"""Long-list set-up: the longest pages that a person can get. Run in the environment of a measured hub; prints their addresses.

Lists go on after 50 rows, that of five hundred people too; a review shows a difference of manifests up to its 1,500th line.
"""

from __future__ import annotations

import json
import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402
from django.urls import reverse  # noqa: E402

from access.members.services import give_membership  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Tenant  # noqa: E402
from access.roles import Role  # noqa: E402
from bench.figures import ROOT  # noqa: E402
from bench.hubs import TOOL  # noqa: E402
from kernel.principal import Principal  # noqa: E402
from registry.versions.services import submit_version  # noqa: E402

MANIFEST = ROOT / "tools" / "commerce" / "manifests" / f"{TOOL}.json"
PEOPLE = 500
NOTES = 400  # more in its output schema: the text of the difference is longer than is shown


def add_people(tenant: Tenant, by: Principal) -> Any:
    """One of them."""
    for number in range(PEOPLE):
        user = get_user_model().objects.create_user(f"reader-{number:04}", first_name=f"Reader {number}")
        give_membership(tenant=tenant, user=user, role=Role.DEVELOPER, by=by, invited=True)
    return user


def submit_long_version(by: Principal) -> str:
    document = json.loads(MANIFEST.read_text()) | {"version": "2.0.0"}
    for number in range(NOTES):
        said = {"type": "string", "maxLength": 100, "description": f"What number {number} says."}
        document["output_schema"]["properties"][f"note_{number}"] = said
    return reverse("review", args=[submit_version(document=document, by=by).pk])


def main() -> None:
    tenant = Tenant.objects.get(slug="demo")
    user = add_people(tenant, Principal.system("setup", tenant_id=tenant.pk))
    review = submit_long_version(principal_of_user(user, tenant))
    print(json.dumps([reverse("people"), review]))


if __name__ == "__main__":
    main()
