"""Evidence: whether facts get into the log as fast as they must, and it answers in time."""

from __future__ import annotations

from statistics import median

from bench import hubs
from bench.figures import MeasuredTimes, judge_figure, print_table

FACTS = 1_000_000
APPEND_TIMES, CHAIN_TIMES, SEALED_PER_S = 0.7, 4, 25_000
PAIR_ROUNDS, PAIR_TIMES = 10, 0.9
SEARCHED, SEARCH_ROUNDS, WARM_MS, COLD_MS = 5_000_000, 40, 20, 60
PROOF_MS, VERIFY_S, GREW_MIB, LAG_MS = 10, 60, 64, 3000
WRITTEN_PER_S = 475  # of the 500 that are tried


def measure_log(url: str, seconds: float) -> list[list[str]]:
    found = hubs.measure_on_postgresql(url, "bench.evidence_log", str(FACTS), str(seconds))
    rates = {name.removeprefix("append "): median(each) for name, each in found.items() if name.startswith("append ")}
    plain, pending, chain, _ = rates.values()
    print_table(
        "Facts appended by 16 writers of one tenant, PostgreSQL, in turn",
        ("", "a second", "against plain"),
        [[name, f"{rate:.0f}", f"{rate / plain:.2f} ×"] for name, rate in rates.items()],
    )
    times = [MeasuredTimes(name, found[name]) for name in ("inclusion", "consistency", "lag")]
    print_table(
        f"Proofs of a log of {FACTS:,} facts; from a commit to its checkpoint at {found['written'][0]:.0f} facts a second",
        ("milliseconds", "N", "min", "p50", "p95"),
        [each.row() for each in times],
    )
    (sealed,), (verified,), (grew,), (written,) = (found[name] for name in ("seal", "verify", "grew", "written"))
    beside, ahead = pending / plain, pending / chain
    limits = dict(zip(("inclusion", "consistency", "lag"), (PROOF_MS, PROOF_MS, LAG_MS), strict=True))
    return [
        judge_figure(
            f"a fact with its pending row: ≥ {APPEND_TIMES} × a plain insert",
            f"{beside:.2f} ×",
            reached=beside >= APPEND_TIMES,
        ),
        judge_figure(
            f"the same: ≥ {CHAIN_TIMES} × an inline hash chain",
            f"{ahead:.1f} ×",
            reached=ahead >= CHAIN_TIMES,
        ),
        judge_figure(f"sealing: ≥ {SEALED_PER_S:,} leaves/s", f"{sealed:,.0f}", reached=sealed >= SEALED_PER_S),
        *(
            judge_figure(
                f"{each.name}: p95 ≤ {limits[each.name]:,} ms",
                f"{each.p95:.1f} ms",
                reached=each.p95 <= limits[each.name],
            )
            for each in times
        ),
        judge_figure(
            f"while ≥ {WRITTEN_PER_S} facts/s were written", f"{written:.0f}", reached=written >= WRITTEN_PER_S
        ),
        judge_figure(f"{FACTS:,} facts verified in ≤ {VERIFY_S} s", f"{verified:.1f} s", reached=verified <= VERIFY_S),
        judge_figure(f"and by ≤ {GREW_MIB} MiB of memory more", f"{grew:.0f} MiB", reached=grew <= GREW_MIB),
    ]


def measure_pairs(url: str) -> list[list[str]]:
    """The median of the ratios within each round: what else the machine does falls on both sides."""
    found = hubs.measure_on_postgresql(url, "bench.evidence_pairs", str(PAIR_ROUNDS))
    ratio = median(held / free for held, free in zip(found["held"], found["free"], strict=True))
    said = f"{ratio:.2f} × ({median(found['held']):.0f} a second)"
    return [judge_figure(f"calls whose pair is held: ≥ {PAIR_TIMES} × without", said, reached=ratio >= PAIR_TIMES)]


def measure_search(url: str) -> list[list[str]]:
    """Each page through the REST view, cold and at once again warm; then drawn by the console, with its 50 rows."""
    found = hubs.measure_on_postgresql(url, "bench.evidence_search", str(SEARCHED), str(SEARCH_ROUNDS))
    names = dict.fromkeys(name.rpartition(" · ")[0] for name in found if " · " in name)
    pages = {
        way: {name: MeasuredTimes(name, found[f"{name} · {way}"]) for name in names}
        for way in ("warm", "cold", "drawn")
    }
    print_table(
        f"A page of a search of {SEARCHED:,} facts, PostgreSQL, p50 and p95 in milliseconds",
        ("", "warm", "", "cold", "", "drawn", ""),
        [
            [name, *(f"{value:.1f}" for way in pages for value in (pages[way][name].p50, pages[way][name].p95))]
            for name in names
        ],
    )
    mib = {
        name.removeprefix("MiB of evidence_"): sizes[0] for name, sizes in found.items() if name.startswith("MiB of ")
    }
    print("MiB with indexes: " + ", ".join(f"{name} {size:,.0f}" for name, size in sorted(mib.items())) + ".")
    verdicts = []
    for way, most in (("warm", WARM_MS), ("cold", COLD_MS)):
        worst = max(pages[way].values(), key=lambda each: each.p95)
        verdicts.append(
            judge_figure(
                f"a page of a search, {way}: p95 ≤ {most} ms (worst: {worst.name})",
                f"{worst.p95:.1f} ms",
                reached=worst.p95 <= most,
            )
        )
    return verdicts
