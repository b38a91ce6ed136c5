"""Dashboard: what an operator sees of a hub in Grafana, as the code of the file that the chart ships.

    .venv/bin/python -m scripts.dashboard             # writes packaging/chart/observability/dashboard.json
    .venv/bin/python -m scripts.dashboard --check     # exit status 1 when the file is another

What the database says of the whole hub is the same from each process, so it is taken with ``max``; what a process counts of its own
work is summed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

FILE = Path(__file__).resolve().parents[1] / "packaging" / "chart" / "observability" / "dashboard.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTH, HEIGHT = 12, 8  # two panels beside each other
SECONDS, PER_SECOND = "s", "cps"


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel. ``lines``: an expression each, and how the legend calls what it gives."""

    title: str
    about: str
    lines: tuple[tuple[str, str], ...]
    unit: str = "short"


def _quantile(share: str, metric: str, by: str) -> str:
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({metric}_bucket[$__rate_interval])))"


def _mean(total: str, count: str, by: str) -> str:
    return f"sum by ({by}) (rate({total}[$__rate_interval])) / sum by ({by}) (rate({count}[$__rate_interval]))"


_DURATION = "toolhub_calls_duration_seconds"

PLOTS = (
    Plot(
        "Calls by state",
        "Calls that ended, a second, by how.",
        (("sum by (state) (rate(toolhub_calls_total[$__rate_interval]))", "{{state}}"),),
        PER_SECOND,
    ),
    Plot(
        "Duration by tool",
        "From the arrival of a call to its end: half, 95 and 99 of 100 took no longer.",
        tuple(
            (_quantile(f"0.{p}", _DURATION, "gen_ai_tool_name"), f"p{p} {{{{gen_ai_tool_name}}}}") for p in (50, 95, 99)
        ),
        SECONDS,
    ),
    Plot(
        "Errors by reason",
        "The ten reasons that callers got most often instead of a value.",
        (
            (
                "topk(10, sum by (code, reason) (rate(toolhub_calls_errors_total[$__rate_interval])))",
                "{{code}} {{reason}}",
            ),
        ),
        PER_SECOND,
    ),
    Plot(
        "Denials by reason",
        "Calls that were refused before they ran.",
        (("sum by (reason) (rate(toolhub_calls_denied_total[$__rate_interval]))", "{{reason}}"),),
        PER_SECOND,
    ),
    Plot(
        "Queue",
        "Calls that wait for a worker, by class of work; how long the oldest has waited, and how long 95 of 100 did.",
        (
            ("max by (work_class) (toolhub_queue_length)", "{{work_class}}: calls"),
            ("max by (work_class) (toolhub_queue_age_seconds)", "{{work_class}}: age of the oldest, s"),
            (_quantile("0.95", "toolhub_queue_wait_seconds", "work_class"), "{{work_class}}: p95 of the wait, s"),
        ),
    ),
    Plot(
        "Workers",
        "Calls that run, by whether their worker still says so, and the places for more.",
        (
            ("max by (state) (toolhub_leases)", "calls {{state}}"),
            ('sum(toolhub_worker_places{state="free"})', "places free"),
        ),
    ),
    Plot(
        "Boxes by state",
        "Of each worker; and how many calls wait for one.",
        (
            ("sum by (instance, state) (toolhub_sandbox_boxes)", "{{instance}} {{state}}"),
            ("sum by (instance) (toolhub_sandbox_waiting)", "{{instance}} calls that wait"),
        ),
    ),
    Plot(
        "Boxes: waits, starts, ends",
        "The mean wait of a call for a box; boxes that were made, or could not be; tools that were stopped.",
        (
            (
                _mean("toolhub_sandbox_waited_seconds_total", "toolhub_sandbox_calls_total", "instance"),
                "{{instance}} mean wait, s",
            ),
            ("sum by (failed) (rate(toolhub_sandbox_made_total[$__rate_interval]))", "made, failed={{failed}}"),
            ("sum by (reason) (rate(toolhub_sandbox_kills_total[$__rate_interval]))", "stopped: {{reason}}"),
        ),
    ),
    Plot(
        "Evidence",
        "How long the oldest fact has waited for its log, since when the log that was signed longest ago is not signed, since when "
        "an anchor has no checkpoint; leaves that a sink has not got.",
        (
            ("max(toolhub_evidence_pending_age_seconds)", "oldest pending fact, s"),
            ("max(toolhub_evidence_checkpoint_age_seconds)", "oldest checkpoint, s"),
            ("max by (anchor) (toolhub_evidence_anchor_age_seconds)", "{{anchor}}, s"),
            ("max by (toolhub_tenant) (toolhub_evidence_sink_lag)", "sink of {{toolhub_tenant}}, leaves"),
        ),
    ),
    Plot(
        "Verification",
        "Logs that do not verify, what the verifier found, and how many leaves it reads a second.",
        (
            ("max(toolhub_evidence_verification_failures)", "logs that do not verify"),
            ("sum by (code) (increase(toolhub_evidence_findings_total[$__rate_interval])) > 0", "found: {{code}}"),
            ("sum(rate(toolhub_evidence_verified_leaves_total[$__rate_interval]))", "leaves a second"),
        ),
    ),
)


def _make_panel(plot: Plot) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    panel = timeseries.Panel().title(plot.title).description(plot.about).datasource(SOURCE).unit(plot.unit)
    panel = panel.span(WIDTH).height(HEIGHT).min(0).legend(legend)
    panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    for at, (expression, legend_format) in enumerate(plot.lines):
        query = prometheus.Dataquery().expr(expression).legend_format(legend_format).ref_id("ABCDEFGH"[at])
        panel = panel.with_target(query.datasource(SOURCE))
    return panel


def render_dashboard() -> str:
    """The file's text."""
    made = (
        dashboard.Dashboard("toolhub")
        .uid("toolhub")
        .description("Calls, queue, sandboxes and evidence of a hub. Made by scripts/dashboard.py.")
        .tags(["toolhub"])
        .time("now-3h", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for plot in PLOTS:
        made = made.with_panel(_make_panel(plot))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the file is as it is made")
    text = render_dashboard()
    if not parser.parse_args().check:
        FILE.write_text(text)
        return 0
    if FILE.exists() and FILE.read_text() == text:
        return 0
    print(f"{FILE} is not what scripts/dashboard.py makes.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
