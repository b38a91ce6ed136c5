"""Check results: what is known about the runtimes of this host, without looking again at each call.

A look takes seconds, so what was seen is kept in a file of the data directory for as long as it can be true: for one boot,
one image, one runtime, and the request and the probe that it was seen with. What was found wrong is looked at again soon.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.engine import EngineError
from invocations.sandbox.isolation.isolation_check import (
    IsolationResult,
    build_container_request,
    check_isolation,
    pack_probe,
)
from kernel.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.engine import Engine

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_AGAIN_S = 60.0
_MOST = 8  # runtimes and images that are remembered


class IsolationChecks:
    """May be used from many threads at once; one of them looks, and the others wait for it."""

    def __init__(
        self,
        engine: Engine,
        *,
        image: str,
        make_sandbox: Callable[[str], Sandbox],
        run_dir: Path,
        kept_in: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.engine = engine
        self._image = image
        self._make_sandbox = make_sandbox
        self._run_dir = run_dir
        self._kept_in = kept_in
        self._clock = clock
        self._lock = threading.Lock()

    def of(self, runtime: str, *, anew: bool = False) -> IsolationResult:
        """``runtime``: its name, empty for the engine's own choice. Never raises: what stands in the way is in ``why``."""
        with self._lock:
            try:
                image = self.engine.image_id(self._image)
            except EngineError as error:
                return IsolationResult(runtime, why=str(error))
            key = self._key(image, runtime)
            known = None if anew else self._read().get(key)
            if known is not None and ((not known.why and not known.missing) or self._clock() - known.at < _AGAIN_S):
                return known
            sandbox = self._make_sandbox(runtime)
            try:
                seen = check_isolation(self.engine, sandbox, image=image, runtime=runtime, run_dir=self._run_dir)
            finally:
                sandbox.close()
            found = replace(seen, at=self._clock())
            self._keep(key, found)
            return found

    def _key(self, image: str, runtime: str) -> str:
        request = build_container_request(image, runtime, fresh=True, uid=0)
        parts = [self.engine.url, image, runtime, _BOOT.read_text().strip(), request]
        return hashlib.sha256(canonicalize(parts) + pack_probe()).hexdigest()

    def _read(self) -> dict[str, IsolationResult]:
        try:
            kept = json.loads(self._kept_in.read_text())
            return {key: IsolationResult.from_json(data) for key, data in kept.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}  # nothing yet, or of another version

    def _keep(self, key: str, found: IsolationResult) -> None:
        kept = {key: found} | {other: each for other, each in self._read().items() if other != key}
        text = json.dumps({each: examined.to_json() for each, examined in list(kept.items())[:_MOST]})
        beside = self._kept_in.with_name(f"{self._kept_in.name}.{os.getpid()}")
        with suppress(OSError):  # it is looked at again then
            beside.write_text(text)
            beside.replace(self._kept_in)
