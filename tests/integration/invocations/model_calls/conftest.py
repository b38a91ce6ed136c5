"""A model that a tenant has connected, and an agent that may ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.model_calls import tenant_providers
from tests.support.connected_models import SCRIPTED, connect_scripted_model
from tests.support.model_calls import ProviderBench

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Person


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> ProviderBench:
    """The provider that all connected models of a test are of."""
    made = ProviderBench()
    monkeypatch.setitem(tenant_providers.KINDS, SCRIPTED, made.connect)
    tenant_providers.forget_providers()
    return made


@pytest.fixture
def connect(operator: Person) -> Callable[..., Tool]:
    """``connect(**terms)``: ``model.script.main``, which has no price."""

    def make(**terms: Any) -> Tool:
        return connect_scripted_model(operator.by, **({"unpriced": "count"} | terms))

    return make


@pytest.fixture
def model(connect: Callable[..., Tool], grant: Callable[..., Any]) -> Tool:
    grant("model.*")
    return connect()
