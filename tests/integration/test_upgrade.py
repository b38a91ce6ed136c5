"""Does a hub of the release before become one of this release, with all that it holds?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.conf import settings


@pytest.mark.req("TOOLS-1")
def test_what_an_older_hub_holds_is_there_after_the_upgrade(empty_database: str) -> None:
    words = [sys.executable, "-m", "tests.older_hub", empty_database]
    done = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sealed": [[0, "what an older hub did"]],
        "consents": [["^1", "requested"], ["^2", "approved"], ["^2", "requested"]],
        "budgets": [["grant", "shop.*", "calls", 100, 86_400, "usr_1"]],
        "windows": [[20_000, 7, 0, 0], [20_001, 9, 0, 0]],
        "grants": [["other.*", "unlimited"], ["shop.*", "limited"]],
        "installations": [["acme", "shop.prices.read", "1.0.0", "enabled"]],
        "versions": [[" pricing beta ", " net ", "shop.prices.read prices reads them. pricing beta"]],
    }
