"""The hub's settings, on the engine and with the options that the environment names (bench/engines.py)."""

from __future__ import annotations

import json
import os

from toolhub.settings import *  # noqa: F403
from toolhub.settings import DATABASES

DATABASES["default"]["ENGINE"] = os.environ["BENCH_ENGINE"]
DATABASES["default"]["OPTIONS"] |= json.loads(os.environ["BENCH_OPTIONS"])
TOOLHUB_LEASE_S = 60  # no heartbeat comes in between
