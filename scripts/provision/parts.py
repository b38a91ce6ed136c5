"""Parts of the tests: which of them one process runs, and how the processes share the machine.

Three processes compute at a time: on two cores one has something to do while another waits for PostgreSQL or for a hub; where they
leave processors without work for a while, a fourth begins. There are more parts than that, so that no core is left without work
because one process had the most to do. Beside them run two that wait for boxes most of the time.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from scripts.provision.console import ROOT, print_line
from scripts.provision.processes import end_process, identify_process
from scripts.provision.processors import IdleTime, read_times, share_idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

AT_ONCE = 3
AT_MOST = 4  # where processors are idle
MIGRATED = "TOOLHUB_TEST_MIGRATED"  # names a folder for databases of which all parts begin with copies
LOOK_AGAIN_S = 0.2
PATIENCE_S = 30.0
# `make test-all` runs a test on both databases unless what it tests has no SQL, lock, JSON, trigger or row-level security of its own.
# Then it runs once, in `make test` too: pages, forms, who may open them and what the OpenAPI document promises on PostgreSQL, with its
# walls, ...
ONLY_WITH_POSTGRESQL = (
    "tests/integration/access/budgets/test_budget_pages.py",
    "tests/integration/access/consents/test_approval_pages.py",
    "tests/integration/access/delegations/test_delegation_pages.py",
    "tests/integration/access/object_permissions/test_object_permission_table.py",
    "tests/integration/access/policies/test_policy_pages.py",
    "tests/integration/access/test_access_table.py",
    "tests/integration/api/test_openapi.py",
    "tests/integration/console/test_console_access.py",
    "tests/integration/console/test_console_forms.py",
    "tests/integration/console/test_every_page.py",
    "tests/integration/evidence/erasures/test_erasure_pages.py",
    "tests/integration/invocations/chains/test_chain_pages.py",
    "tests/integration/invocations/replays/test_replay_pages.py",
    "tests/integration/invocations/sandbox/test_sandbox_page.py",
    "tests/integration/registry/dependencies/test_dependency_pages.py",
    "tests/integration/registry/installations/test_installation_pages.py",
)
# ... and on SQLite wording, protocols, signatures, files, what programs answer, and values that only SQLite takes.
ONLY_WITH_SQLITE = (
    "tests/integration/access/issuers/test_issuer_tokens.py",
    "tests/integration/api/test_body_types.py",
    "tests/integration/api/test_problem_catalogue.py",
    "tests/integration/api/test_remedies_at_each_door.py",
    "tests/integration/console/test_asset_names.py",
    "tests/integration/console/test_assets.py",
    "tests/integration/console/test_noun_packages.py",
    "tests/integration/evidence/integrity/test_mistyped_values.py",
    "tests/integration/invocations/dispatch/test_dispatch_errors.py",
    "tests/integration/invocations/end/test_misbehaving_tools.py",
    "tests/integration/invocations/end/test_tool_error_codes.py",
    "tests/integration/invocations/files/test_upload_limits.py",
    "tests/integration/invocations/mcp/test_mcp_endpoint.py",
    "tests/integration/invocations/mcp/test_mcp_tool_names.py",
    "tests/integration/invocations/model_calls/served/test_bad_requests.py",
    "tests/integration/invocations/model_calls/served/test_messages_and_responses.py",
    "tests/integration/invocations/model_calls/served/test_provider_sdks.py",
    "tests/integration/invocations/model_calls/served/test_vectors_and_models.py",
    "tests/integration/invocations/model_calls/test_body_limits.py",
    "tests/integration/invocations/model_calls/test_journal_costs.py",
    "tests/integration/invocations/model_calls/test_provider_journals.py",
    "tests/integration/kernel/test_logging_format.py",
    "tests/integration/kernel/test_request_bounds.py",
    "tests/integration/kernel/test_request_metrics.py",
    "tests/integration/kernel/test_sqlite_write_turns.py",
    "tests/integration/kernel/test_trusted_proxies.py",
    "tests/integration/registry/dependencies/test_dependency_builds.py",
    "tests/integration/registry/dependencies/test_dependency_failures.py",
    "tests/integration/registry/discovery/test_tools_for_models.py",
    "tests/integration/toolhub/test_sdk_index.py",
)
# What commits, locks, waits, migrates or reads the log, and what searches or writes SQL of its own: in `make test` these run on SQLite
# as well. The other files, many cases of rules, forms and formats over statements that these send too, run there in `make test-all`;
# every list of the API is opened on both (test_list_queries.py).
ALSO_WITH_SQLITE = (
    "tests/integration/access/budgets/test_budget_concurrency.py",
    "tests/integration/access/budgets/test_budget_ledger.py",
    "tests/integration/access/budgets/test_rate_limits.py",
    "tests/integration/access/connections/test_connection_rights.py",
    "tests/integration/access/policies/test_policies.py",
    "tests/integration/api/test_list_queries.py",
    "tests/integration/evidence/archives/test_archived_leaves.py",
    "tests/integration/evidence/archives/test_verified_archives.py",
    "tests/integration/evidence/deliveries/test_delivery_queues.py",
    "tests/integration/evidence/erasures/test_erasure.py",
    "tests/integration/evidence/erasures/test_overwritten_pages.py",
    "tests/integration/evidence/erasures/test_retention.py",
    "tests/integration/evidence/exports/test_exports.py",
    "tests/integration/evidence/facts/test_append_only.py",
    "tests/integration/evidence/facts/test_canaries.py",
    "tests/integration/evidence/facts/test_fact_records.py",
    "tests/integration/evidence/integrity/test_concurrent_log_growth.py",
    "tests/integration/evidence/integrity/test_missing_values.py",
    "tests/integration/evidence/integrity/test_shared_logs.py",
    "tests/integration/evidence/integrity/test_tamper_detection.py",
    "tests/integration/evidence/integrity/test_verifier.py",
    "tests/integration/evidence/integrity/test_verifier_unreadable_rows.py",
    "tests/integration/evidence/log/test_keeper.py",
    "tests/integration/evidence/log/test_log_damage.py",
    "tests/integration/evidence/log/test_log_keys.py",
    "tests/integration/evidence/log/test_sealer.py",
    "tests/integration/evidence/search/test_fact_search.py",
    "tests/integration/evidence/search/test_search_of_a_call.py",
    "tests/integration/evidence/search/test_search_pages.py",
    "tests/integration/evidence/sinks/test_event_sinks.py",
    "tests/integration/evidence/test_master_key_check_values.py",
    "tests/integration/invocations/accept/test_begin_end_pairs.py",
    "tests/integration/invocations/accept/test_idempotency.py",
    "tests/integration/invocations/call_hours/test_call_hours.py",
    "tests/integration/invocations/call_search/test_call_list.py",
    "tests/integration/invocations/decide/test_revocation_in_flight.py",
    "tests/integration/invocations/mcp/test_open_streams.py",
    "tests/integration/invocations/model_calls/test_model_calls.py",
    "tests/integration/invocations/model_calls/test_reserved_tokens.py",
    "tests/integration/invocations/model_calls/test_settled_requests.py",
    "tests/integration/invocations/model_calls/test_unwritten_ends.py",
    "tests/integration/invocations/queue/test_call_retries.py",
    "tests/integration/invocations/queue/test_queue.py",
    "tests/integration/invocations/queue/test_queue_order.py",
    "tests/integration/invocations/queue/test_sweeper.py",
    "tests/integration/invocations/queue/test_unfinished_calls.py",
    "tests/integration/invocations/run/test_call_progress.py",
    "tests/integration/invocations/run/test_lost_runs.py",
    "tests/integration/invocations/run/test_run_segments.py",
    "tests/integration/invocations/run/test_time_limits.py",
    "tests/integration/invocations/run/test_trace.py",
    "tests/integration/invocations/run/test_worker.py",
    "tests/integration/invocations/test_call_event_stream.py",
    "tests/integration/invocations/test_callbacks.py",
    "tests/integration/invocations/test_held_calls.py",
    "tests/integration/kernel/test_deferred_responses.py",
    "tests/integration/kernel/test_idle_hub.py",
    "tests/integration/kernel/test_index_changes.py",
    "tests/integration/kernel/test_rows.py",
    "tests/integration/registry/dependencies/test_dependency_loop.py",
    "tests/integration/registry/discovery/test_tool_visibility.py",
    "tests/integration/registry/test_decision_rows.py",
    "tests/integration/toolhub/test_hub_installation.py",
    "tests/integration/toolhub/test_upgrade.py",
)
# Hubs that lose a service, and the console in a browser. The others of tests/e2e share one hub.
BREAKING = (
    "tests/e2e/test_console_walk.py",
    "tests/e2e/test_doc_blocks.py",
    "tests/e2e/test_json_logs.py",
    "tests/e2e/test_long_calls.py",
    "tests/e2e/test_production_shape.py",
    "tests/e2e/test_readiness.py",
    "tests/e2e/test_signing_in_walk.py",
)


@dataclass(frozen=True, slots=True)
class Part:
    """``shown``: it writes where people look, and says how far it is. The others are printed when they have ended.
    ``database``: of a name of its own on PostgreSQL. ``waits``: most of the time, so it is none of those that compute."""

    says: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    sqlite: bool = False
    shown: bool = False
    database: str = ""
    waits: bool = False

    def build_command(self, pytest: Sequence[str]) -> list[str]:
        cache = [] if self.shown else ["-p", "no:cacheprovider"]
        return [*pytest, *cache, *self.paths, *(f"--ignore={each}" for each in self.without)]

    def holds(self, test: str) -> bool:
        """Whether it runs the tests of this file."""
        within = [
            any(test == path or test.startswith(f"{path}/") for path in paths) for paths in (self.paths, self.without)
        ]
        return within == [True, False]


# The integration tests on PostgreSQL are four parts, so that none is so long that at its end a core has nothing to do.
OF_CALLS = ("tests/integration/invocations",)
OF_TOOLS = ("tests/integration/registry", "tests/integration/toolhub")
OF_EVIDENCE = ("tests/integration/evidence",)
# What has no box, and computes.
OF_MODELS = ("tests/contracts/models",)
# These need nothing but the Python packages, so they run while those of the system are installed and the services start, ...
FIRST = (Part("units", ("tests/unit",), sqlite=True),)
# ... and these no image of the sandbox, so they run while the images are built.
EARLY = (
    Part("guards and judges of others", ("tests/guards", "tests/foreign", "tests/deployment"), sqlite=True),
    Part(
        "access and pages on PostgreSQL",
        ("tests/integration",),
        (*OF_CALLS, *OF_TOOLS, *OF_EVIDENCE, *ONLY_WITH_SQLITE),
        database="test_toolhub_second",
    ),
)
# What takes longest is begun first, also where it mostly waits, as for boxes; what computes all the time comes last, for beside it the
# other core has work to the end. No two parts use one database on PostgreSQL.
PARTS = (
    Part("boxes", ("tests/contracts",), OF_MODELS, sqlite=True, waits=True),
    Part("attacks on boxes", ("tests/attacks",), sqlite=True, waits=True),
    Part("calls on PostgreSQL", OF_CALLS, ONLY_WITH_SQLITE, shown=True, database="test_toolhub_fourth"),
    Part("whole hubs", ("tests/compose", "tests/e2e"), BREAKING, sqlite=True),
    Part("hubs that are killed, and judges of MCP", ("tests/crash", "tests/mcp_conformance"), sqlite=True),
    Part("hubs that lose a service, and the console", BREAKING, sqlite=True),
    Part("tools on PostgreSQL, and what only it has", (*OF_TOOLS, "tests/postgresql"), ONLY_WITH_SQLITE),
    Part("ways out of boxes", ("tests/egress",), sqlite=True),
    Part("integration tests on SQLite", (*ONLY_WITH_SQLITE, *ALSO_WITH_SQLITE), sqlite=True),
    Part("models without a box", OF_MODELS, sqlite=True),
    Part("evidence on PostgreSQL", OF_EVIDENCE, ONLY_WITH_SQLITE, database="test_toolhub_third"),
)
# Of `make test-all`.
WHOLE = tuple(
    replace(part, paths=("tests/integration",), without=ONLY_WITH_POSTGRESQL) if "on SQLite" in part.says else part
    for part in PARTS
)


@dataclass(frozen=True, slots=True)
class Run:
    part: Part
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    begun: float

    def report(self) -> int:
        """Print what it said; its exit status."""
        print_line(f"\n[{time.monotonic() - self.begun:6.0f} s] Tests: {self.part.says}")
        self.output.seek(0)
        print(self.output.read().decode(errors="replace"), flush=True)
        return self.process.returncode


def find_next(waiting: Sequence[Part], running: Sequence[Part], idle: IdleTime) -> Part | None:
    """The first of those that wait which may begin beside those that run."""
    compute = sum(not part.waits for part in running)
    has_room = compute < AT_ONCE or (compute < AT_MOST and idle.is_much())
    return next((part for part in waiting if has_room or part.waits), None)


def run_parts(
    pytest: Sequence[str],
    env: dict[str, str],
    start_services: Callable[[], dict[str, str]],
    build_images: Callable[[], dict[str, str]],
    *,
    whole: bool = False,
) -> int:
    """The first exit status that is not 0. What those two make is more of the environment of the parts that begin after them."""
    codes = []
    running: list[Run] = []
    begun = read_times()
    with contextlib.ExitStack() as stack, _interrupted(running):
        env = env | {MIGRATED: stack.enter_context(tempfile.TemporaryDirectory(prefix="toolhub-migrated-"))}
        running += [stack.enter_context(_begin(part, pytest, env)) for part in FIRST]
        env = env | start_services()
        running += [stack.enter_context(_begin(part, pytest, env)) for part in EARLY]
        env = env | build_images()
        waiting, idle = list(WHOLE if whole else PARTS), IdleTime()
        while waiting or running:
            while part := find_next(waiting, [run.part for run in running], idle):
                waiting.remove(part)
                running.append(stack.enter_context(_begin(part, pytest, env)))
            time.sleep(LOOK_AGAIN_S)
            for run in [each for each in running if each.process.poll() is not None]:
                running.remove(run)
                codes.append(run.report())
    if (idle_share := share_idle(begun)) is not None:
        print_line(f"Processors: idle for {idle_share:.0%} of that time.")
    return next(filter(None, codes), 0)


@contextlib.contextmanager
def _interrupted(running: Sequence[Run]) -> Iterator[None]:
    """A Ctrl-C reaches them too, and they get the time to clean up."""
    try:
        yield
    except KeyboardInterrupt:
        deadline = time.monotonic() + PATIENCE_S
        for run in running:
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                run.process.wait(max(0.0, deadline - time.monotonic()))
        raise


@contextlib.contextmanager
def _begin(part: Part, pytest: Sequence[str], env: dict[str, str]) -> Iterator[Run]:
    """Its process, which does not outlive the block."""
    env = env | ({"TOOLHUB_TEST_DB": "sqlite"} if part.sqlite else {})
    env = env | ({"TOOLHUB_TEST_DATABASE_NAME": part.database} if part.database else {})
    with tempfile.TemporaryFile() as output:
        to = None if part.shown else output
        process = subprocess.Popen(
            part.build_command(pytest), env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=to, stderr=to
        )
        name = identify_process(process.pid)
        try:
            yield Run(part, process, output, time.monotonic())
        finally:
            end_process(name, signal.SIGTERM)
