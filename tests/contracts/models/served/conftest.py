"""An embedded hub that serves, with models of a provider on this machine, and an agent that may call them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.contracts.models.served.provider import answer
from tests.e2e.conftest import UNPAIRED, Embedded
from tests.e2e.processes import ROOT, python, run
from tests.support.migrated_databases import FILE, copy_migrated_sqlite
from tests.support.model_servers import ModelServer, model_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ServedHub:
    """``narrow``: a key of the same agent that may only read."""

    hub: Embedded
    provider: ModelServer
    key: str
    narrow: str

    @property
    def url(self) -> str:
        return self.hub.url


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHub]:
    """Shared: do not break it."""
    tools = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "tests" / "tools")])
    data = tmp_path_factory.mktemp("served") / "hub"
    hub = Embedded.at(data, TOOLHUB_TOOLS_PATH=tools, TOOLHUB_OUTBOUND_NETWORKS="127.0.0.0/8")
    with model_server(answer) as provider:
        copy_migrated_sqlite(data / FILE)
        said = run(python("-m", "tests.contracts.models.served.arrange", provider.url), hub.env, within_s=300)
        found = json.loads(said.splitlines()[-1])
        with hub.served(within_s=300):
            yield ServedHub(hub, provider, found["key"], found["narrow"])
    assert hub.count(UNPAIRED) == 0
