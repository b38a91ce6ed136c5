"""What keeps the evidence, beside those who call and those who run tools?

The keeper is one process (`manage.py keep`), or threads of the embedded default: a loop for each row of :data:`LOOPS`. It alone
holds the key that logs are signed with. Any number of keepers may be started; of each loop's work one does a piece at a time.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from evidence import erasure, retention
from evidence.checking import loop as verifying
from evidence.events import delivering
from evidence.exports import running as exporting
from evidence.log import sealer
from evidence.search import indexing
from evidence.witnessing import anchors
from toolhub.kernel.news import news

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDED_WITHIN_S = 30

LOOPS: dict[str, Callable[[threading.Event], None]] = {
    "sealer": sealer.run,
    "events": delivering.run,
    "witnessing": anchors.run,
    "indexer": indexing.run,
    "erasure": erasure.run,
    "retention": retention.run,
    "verifier": verifying.run,
    "exporter": exporting.run,
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
