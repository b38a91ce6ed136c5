"""Keeper: the process that keeps the evidence, beside those who call and those who run tools.

The keeper is one process (`manage.py keep`), or threads of the embedded default: a loop for each row of :data:`LOOPS`. It alone
holds the key that logs are signed with. Any number of keepers may be started; of each loop's work one does a piece at a time.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from evidence import retention
from evidence.erasures import services as erasures
from evidence.exports import jobs as exporting
from evidence.integrity import loop as verifying
from evidence.log import sealer
from evidence.search import indexer
from evidence.sinks import delivery
from evidence.witnesses import anchors
from kernel.database.change_watch import news

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDED_WITHIN_S = 30

LOOPS: dict[str, Callable[[threading.Event], None]] = {
    "sealer": sealer.run_sealer,
    "events": delivery.run_delivery,
    "witnessing": anchors.run_anchoring,
    "indexer": indexer.run_indexer,
    "erasure": erasures.run_erasures,
    "retention": retention.run_retention,
    "verifier": verifying.run_verifier,
    "exporter": exporting.run_exports,
}


@contextmanager
def loop_thread(name: str, loop: Callable[[threading.Event], None]) -> Iterator[threading.Thread]:
    """A loop that runs while the block does."""
    stop = threading.Event()
    thread = threading.Thread(target=loop, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        news.wake()
        thread.join(timeout=ENDED_WITHIN_S)


@contextmanager
def keeper_threads() -> Iterator[list[threading.Thread]]:
    with ExitStack() as stack:
        yield [stack.enter_context(loop_thread(name, loop)) for name, loop in LOOPS.items()]
