"""A playground that an operator has set up, and people who talk in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from access.roles import Role
from invocations.playground import services
from invocations.playground.services import MessageDraft
from tests.conftest import make_person
from tests.integration.invocations.agent_runs.conftest import driver  # noqa: F401  fixture
from tests.integration.invocations.model_calls.conftest import bench, connect, model  # noqa: F401  fixtures
from tests.support.agent_runs import ECHO
from tests.support.connected_models import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from invocations.playground.models import Playground, PlaygroundMessage
    from registry.models import Tool
    from tests.conftest import Person
    from tests.support.agent_runs import RunDriver

REASON = "People try the models."


@dataclass
class Talker:
    """Somebody who sends messages, and has them answered when they say so."""

    person: Person
    driver: RunDriver

    def send(self, text: str = "Which?", *, answered: bool = True, **said: Any) -> PlaygroundMessage:
        conversation = said.pop("conversation_id", None)
        draft = MessageDraft(text=text, **({"models": (MODEL,), "tools": (ECHO,)} | said))
        sent = services.send_message(draft, token=uuid4(), conversation_id=conversation, by=self.person.by)
        if answered:
            self.driver.drive()
        return sent


@pytest.fixture
def second_model(model: Tool, connect: Callable[..., Tool]) -> Tool:  # noqa: F811
    return connect(alias="other")


@pytest.fixture
def playground(driver: RunDriver, model: Tool, tenant: Tenant) -> Playground:  # noqa: F811
    by = make_person(tenant, "owen", Role.OWNER).by
    return services.set_up_playground(
        name="playground", models=["model.*"], tools="sample.*", money=10**9, calls=100, reason=REASON, by=by
    )


@pytest.fixture
def dana(playground: Playground, developer: Person, driver: RunDriver) -> Talker:  # noqa: F811
    return Talker(developer, driver)
