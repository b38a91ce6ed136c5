"""Fixtures of access: an identity provider that vouches for the people of a tenant, and a program that shows what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.roles import Role
from tests.conftest import make_person
from tests.support.identity_assertions import Enterprise, enter_enterprise, know_person, let_vouch, sign_in_with, trust

if TYPE_CHECKING:
    from access.models import Tenant, TrustedIssuer
    from tests.conftest import Caller, Person


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def enterprise(operator: Person, owner: Person, settings: Any) -> Enterprise:
    settings.SOCIALACCOUNT_PROVIDERS = sign_in_with()
    know_person(operator, "s-1")
    return enter_enterprise(by=operator.by)[0]


@pytest.fixture
def vouching(enterprise: Enterprise, caller: Caller, owner: Person) -> TrustedIssuer:
    return let_vouch(trust(enterprise, by=owner.by), caller, by=owner.by)
