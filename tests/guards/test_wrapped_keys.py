"""Wrapped keys: is every column that a master key wraps known to a rotation?"""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db.models import CharField

from evidence.keys.wrapped_keys import SEALED
from toolhub.database.row_level_security import OURS

# Names of keys that wrap nothing in their row.
OTHERS = {
    "evidence.MasterKey.key_id": "a master key itself, by its check value",
    "registry.PublisherKey.key_id": "a public key of a publisher",
}


@pytest.mark.req("SPEC-10")
def test_every_row_that_names_a_master_key_is_found_by_a_rotation() -> None:
    named = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        if model._meta.app_label in OURS
        for field in model._meta.local_concrete_fields
        if isinstance(field, CharField) and (field.name == "key_id" or field.name.endswith("_key_id"))
    }

    assert named - {f"{each.model}.{each.key_id}" for each in SEALED} == set(OTHERS)
