"""Harm at import: do harm while being loaded."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

threading.Thread(target=time.sleep, args=(60,)).start()
os.write(3, b"L")
json.dumps = lambda *_, **__: '"forged"'
sys.exit = lambda *_: None  # type: ignore[assignment]
os._exit = lambda *_: time.sleep(60)  # type: ignore[assignment]


def run() -> list[str]:
    return []
