"""The crash matrix: does docs/reference/crash-matrix.md say what the tests assert? Writes it; with ``--check`` only compares,
and exits with 2.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernel.fault_injection import EXPORTING, MERGING, REPLAYING, SEALING
from tests.crash.plan import BATCHES_PLANNED, KINDS, LOSSES, MOMENTS, Batch
from tests.crash.run_plan import LOSSES_OF_RUNS, MOMENTS_OF_RUNS, RUNS, RUNS_OF_CORE, STEPS, WHILE, RunFate, count_runs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "crash-matrix.md"
HEAD = """\
<!-- Generated from tests/crash/plan.py and run_plan.py by `python -m tests.crash.page`. Do not edit. -->

# Crash matrix

What becomes of a call when something dies under it. Each cell is a test on PostgreSQL and Redis with a web process and a worker of
their own: the process is ended with SIGKILL at that very point, another takes its place, and then the call, its facts, its effects
and its budgets are looked at. `make test-all` runs all of them, `make test` those in bold.

Whatever the row, each test also sees that

- the call has exactly one Begin and exactly one End, and no attempt is left open;
- an effect with a key took place once, however often its tool was run; of a tool without a key nothing was run again;
- no two runs of the call overlapped, and no box of a dead worker is left;
- nothing is reserved in any budget, and what is used is what the calls took;
- who repeats the call with its key gets the same answer byte for byte, and who was promised an answer (202) can fetch it.

`outcome_unknown` is an honest answer: the hub does not know whether the tool had its effect, and an operator resolves it.
"""
WHERE = """
## A process is killed

| killed | when | point | {kinds} |
| --- | --- | --- | {rules} |
"""
LOST = """
## Something else goes away

| what is lost | {kinds} |
| --- | {rules} |
"""
TOGETHER = """
## A worker is killed while one of its threads works for several calls

Four calls at once, of each kind. What is done together is there for all of them afterwards, or for none.

| when | point | {kinds} |
| --- | --- | {rules} |
"""
RUNS_OF_AGENTS = """
## An agent run is interrupted

A run whose model is asked four times: it proposes a tool that honours its key, then one without a key for which a person must agree
in the console, then the first again, and then it answers. In each case {runs} runs are begun at once ({core} in those in bold) and
are at the same step; {all} in all. Whatever the row, each test also sees that

- a run that was accepted is there once and has one Begin and one End, and so has each of its calls;
- an order reached the store once at most, whichever call it came with, and exactly once where its call succeeded;
- each answer was asked for once, but for a question that was open when its process died, which is asked once more with the same
  conversation (both may have to be paid);
- the run ends with `outcome_unknown` where the outcome of a tool is unknown, and only there;
- whoever follows the run, and comes back with the last id when the connection breaks, is told each event once;
- nothing is reserved in any budget, and what is used is what the calls took.

A person is a web process in which one agrees; a repairer a worker that dies of what another process has left by dying.

| killed | at | when | point | each run ends with |
| --- | --- | --- | --- | --- |
"""
LOST_OF_RUNS = """
| what is lost | while | each run ends with |
| --- | --- | --- |
"""
BESIDE = """
## What no call waits for

Also in `make test`. The next process goes on where the killed one was.

| killed | when | point | what is there afterwards |
| --- | --- | --- | --- |
"""
AFTERWARDS = {
    "keeper, sealing": (SEALING, "each fact is one leaf, none waits"),
    "keeper, indexing": (MERGING, "each tag is in the index with each of its leaves once"),
    "keeper, exporting": (EXPORTING, "each fact is in the export once, and its bundle verifies"),
    "worker, replaying": (REPLAYING, "each call of the period is replayed once"),
}


def text() -> str:
    kinds = {"kinds": " | ".join(KINDS.values()), "rules": " | ".join("---" for _ in KINDS)}
    lines = [HEAD, WHERE.format(**kinds)]
    for moment in MOMENTS:
        cells = [moment.fates[kind].says() if kind in moment.fates else "" for kind in KINDS]
        bold = [f"**{cell}**" if kind in moment.core else cell for kind, cell in zip(KINDS, cells, strict=True)]
        lines.append(f"| {moment.by} | {moment.says} | `{moment.point}` | {' | '.join(bold)} |\n")
    lines.append(LOST.format(**kinds))
    for loss in LOSSES:
        cells = [loss.fates[kind].says() if kind in loss.fates else "" for kind in KINDS]
        bold = [f"**{cell}**" if kind in loss.core else cell for kind, cell in zip(KINDS, cells, strict=True)]
        lines.append(f"| {loss.what} | {' | '.join(bold)} |\n")
    lines.append(TOGETHER.format(**kinds))
    lines += [list_batch(batch) for batch in BATCHES_PLANNED]
    lines += list_runs()
    lines.append(BESIDE)
    for who, (points, there) in AFTERWARDS.items():
        lines += [
            f"| {who} | {says.removeprefix('worker: ')} | `{point}` | {there} |\n" for point, says in points.items()
        ]
    return "".join(lines)


def list_batch(batch: Batch) -> str:
    """In bold, as `make test` tries all of them."""
    cells = [", or ".join(dict.fromkeys(fates[kind].says() for fates in batch.fates)) for kind in KINDS]
    return f"| {batch.says} | `{batch.point}` | {' | '.join(f'**{cell}**' for cell in cells)} |\n"


def list_runs() -> list[str]:
    lines = [RUNS_OF_AGENTS.format(runs=RUNS, core=RUNS_OF_CORE, all=count_runs())]
    for moment in MOMENTS_OF_RUNS:
        by = f"{moment.by}, after {moment.first[0]} at `{moment.first[1]}`" if moment.first else moment.by
        cells = [
            by,
            STEPS[moment.after],
            moment.says,
            f"`{moment.point}`",
            describe_fate(moment.fate, core=moment.core),
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    lines.append(LOST_OF_RUNS)
    lines += [f"| {loss.what} | {WHILE[loss.at]} | {loss.fate.says()} |\n" for loss in LOSSES_OF_RUNS]
    return lines


def describe_fate(fate: RunFate, *, core: bool) -> str:
    return f"**{fate.says()}**" if core else fate.says()


def main() -> int:
    if "--check" not in sys.argv:
        PAGE.write_text(text())
        return 0
    if PAGE.exists() and PAGE.read_text() == text():
        return 0
    print(f"{PAGE} differs from tests/crash/plan.py. Type `python -m tests.crash.page` and commit the result.")
    return 2


if __name__ == "__main__":
    sys.exit(main())
