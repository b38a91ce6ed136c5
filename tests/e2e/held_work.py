"""Held work: what waits for somebody's decision at a hub of the demonstration."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from tests.e2e.browser import PATIENCE_MS
from tests.e2e.processes import ROOT

if TYPE_CHECKING:
    from tests.e2e.conftest import Embedded
    from tests.e2e.job_counts import Count

QUOTE, ORDER = "commerce.pricing.get_realtime_quote", "commerce.checkout.create_draft_order"
MANIFESTS = ROOT / "tools" / "commerce" / "manifests"


def read_manifest(tool: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((MANIFESTS / f"{tool}.json").read_text())
    return document


def submit_breaking_version(dana: Count) -> None:
    """A version with one change, which refuses what was accepted before."""
    document = copy.deepcopy(read_manifest(QUOTE)) | {"version": "9.0.0"}
    document["input_schema"]["properties"]["quantity"]["maximum"] = 5
    dana.tab("Submit a version")
    dana.fill("text", json.dumps(document))
    dana.button("Check and submit")
    expect(dana.main.get_by_role("heading", level=1)).to_contain_text(QUOTE, timeout=PATIENCE_MS)


def hold_order(hub: Embedded, key: str) -> str:
    """The id of the consent for which a call waits."""
    held = hub.agent.invoke(
        ORDER,
        copy.deepcopy(read_manifest(ORDER)["input_schema"]["examples"][0]),
        {"Prefer": "respond-async", "Idempotency-Key": key},
        on_consent="hold",
        purpose=f"An order of a customer ({key}).",
    )
    assert held.status == 202, held
    return str(held.json()["call"]["held"]["url"].partition("/consents/")[2])
