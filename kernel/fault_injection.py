"""Fault injection: where a process can be broken on purpose, to see that nothing is lost by it.

For tests only. ``TOOLHUB_FAULTS=claim.committed=kill`` in the environment of a process ends it with SIGKILL when it comes to that
point, as a crash would; ``claim.committed=kill:/a/file`` does so once the file is there, so that a test says which time it is;
``claim.committed=stop:/a/file`` keeps it there until the file is there; ``turns.waits=note:/a/file`` goes on, and leaves a line in the
file. Several are separated by commas.
Without it a point is a look into an empty dictionary.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

# In the order in which a call comes by. The crash matrix (tests/crash) kills a process at each of them.
POINTS = {
    "call.decided": "web: the preflight has said yes, nothing is written",
    "accept.before_commit": "web: row, Begin, budget and message are written, not committed",
    "accept.committed": "web: the call is accepted, no message has been sent",
    "ring.sent": "web: the message has been sent",
    "wait.looked": "web: the caller waits, the call goes on",
    "answer.before": "web: the call has ended, its caller has not been told",
    "message.heard": "worker: a message was heard, nothing is claimed",
    "claim.before_commit": "worker: the claim is written, not committed",
    "claim.committed": "worker: the call is claimed, nothing has been prepared",
    "run.before": "worker: all is prepared, the tool has not begun",
    "run.after": "worker: the tool is done, nothing of it is written",
    "finish.before_commit": "worker or sweeper: End, values and budget are written, not committed",
    "finish.committed": "worker or sweeper: the call has ended, nobody has been woken",
    "relay.before_commit": "sweeper: a message that was never sent is taken up, not committed",
    "relay.committed": "sweeper: a message that was never sent is taken up and committed, not sent",
    "again.before_commit": "sweeper: a lost call is queued again, not committed",
    "again.committed": "sweeper: a lost call is queued again and committed, no message has been sent",
}
# Of the keeper; no call waits for it. tests/integration/evidence/log/test_sealer_crashes.py kills it at each of them.
SEALING = {
    "seal.before_commit": "facts are in the tree and not pending any more, not committed",
    "seal.committed": "the same, committed; the global log does not know",
    "note.before_commit": "new checkpoints are leaves of the global log, not committed",
    "note.committed": "the same, committed",
}
# The same, of the indexer: tests/integration/evidence/search/test_bucket_crashes.py.
MERGING = {
    "merge.before_commit": "some buckets of a span are put together, not committed",
    "merge.committed": "the same, committed; there may be more of the span",
}
EXPORTING = {
    "export.before_commit": "a piece of an export is written, not committed",
    "export.committed": "the same, committed",
}
REPLAYING = {
    "replay.before_commit": "worker: a piece of a replay is written, not committed",
    "replay.committed": "the same, committed; the worker still has the replay",
}
# Of calls of models, which the process that took them runs: tests/integration/invocations/model_calls/test_model_crashes.py.
MODEL_CALLS = {
    "model.accepted": "web: the call of a model has its Begin, its provider was not asked",
    "model.answered": "web: the provider has answered, nothing of it is written",
}
# Of agent runs, and of the calls of theirs that wait for people: tests/crash/test_interrupted_runs.py kills a process at each of them,
# and at most of those above.
AGENT_RUNS = {
    "agent_run.before_commit": "row, question and Begin of the run are written, not committed",
    "agent_run.committed": "the run is accepted, none of its calls was made",
    "turn.due": "no call of the run is open, nobody has taken it on",
    "turn.noted": "what became of its calls is noted, nothing was decided, nothing is committed",
    "turn.before_commit": "its next calls are written, not committed",
    "turn.committed": "its next calls are committed, no model was asked and no worker told",
    "agent_run_end.before_commit": "End and state of the run are written, not committed",
    "agent_run_end.committed": "the run has ended, nobody was told",
    "resume.before_commit": "a person has agreed, the call is queued, not committed",
    "resume.committed": "a person has agreed, the call is queued and committed, no worker was told",
}
# Of what a thread of a worker does for several calls at once: tests/crash/test_shared_work.py kills it at each of them, but for the
# two at which it only waits.
BATCHES = {
    "turns.waits": "worker: a thread waits for its turn",
    "claims.committed": "worker: several calls are claimed in one transaction, committed, and no thread has its own",
    "commits.alone": "worker: a transaction is committed by itself, nothing of it is sent",
    "commits.taken": "worker: several Ends are to be committed as one transaction, nothing is sent",
    "commits.sent": "worker: the same is sent, and nobody knows what became of it",
    "commits.committed": "worker: the same is committed, no thread knows",
}
ACTIONS = ("kill", "stop", "note")


def _read(text: str) -> dict[str, str]:
    found = dict(part.strip().split("=", 1) for part in text.split(",") if "=" in part)
    wrong = [
        f"{name}={what}"
        for name, what in found.items()
        if name not in POINTS | SEALING | MERGING | EXPORTING | REPLAYING | MODEL_CALLS | AGENT_RUNS | BATCHES
        or what.split(":")[0] not in ACTIONS
    ]
    if wrong or text.count(",") + 1 != len(found or [""]):
        raise SystemExit(f"TOOLHUB_FAULTS is for tests; it cannot be read: {text}")
    return found


_ARMED = _read(os.environ.get("TOOLHUB_FAULTS", ""))


def inject_fault(point: str) -> None:
    """A point that a test may name."""
    if _ARMED and (what := _ARMED.get(point)):
        _break(what)


def _break(what: str) -> None:
    action, _, place = what.partition(":")
    if action == "kill":
        if not place or Path(place).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return
    if action == "note":
        with Path(place).open("a") as file:
            file.write("\n")
        return
    while not Path(place).exists():
        time.sleep(0.05)
