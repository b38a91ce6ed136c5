"""Data classes: may data of a class be sent to a provider of models?"""

from __future__ import annotations

import pytest

from access.redaction import KINDS
from registry.model_providers.data_classes import find_data_class, list_unsendable
from registry.models import ModelProvider


@pytest.mark.req("LLM-4")
def test_a_provider_is_sent_the_classes_that_it_names_and_no_other() -> None:
    provider = ModelProvider(data_classes=["personal", "health"])

    assert list_unsendable(["personal"], provider) == []
    assert list_unsendable(["payment", "personal", "credentials"], provider) == ["credentials", "payment"]


@pytest.mark.req("LLM-4")
def test_what_is_of_no_class_may_be_sent_to_all() -> None:
    assert list_unsendable([], ModelProvider(data_classes=[])) == []


@pytest.mark.req("LLM-4")
def test_whatever_a_detector_finds_is_of_a_class() -> None:
    found = {kind: find_data_class(kind) for kind in KINDS}

    assert (found["card"], found["secret"], found["email"]) == ("payment", "credentials", "personal")
    assert set(found.values()) == {"personal", "payment", "credentials"}
