"""Parts of the tests: which of them one process runs, and how the processes share the machine.

Three processes run at a time: on two cores one has something to compute while another waits for PostgreSQL, for a box or for a hub.
There are more parts than that, so that no core is left without work because one process had the most to do.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

AT_ONCE = 3
LOOK_AGAIN_S = 0.2
PATIENCE_S = 30.0
# A test runs on both databases unless what it tests has no SQL, lock, JSON, trigger or row-level security of its own.
# Then it runs once: pages, forms, who may open them and what the OpenAPI document promises on PostgreSQL, with its walls, ...
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
    "tests/integration/evidence/erasures/test_erasure_pages.py",
    "tests/integration/invocations/chains/test_chain_pages.py",
    "tests/integration/invocations/replays/test_replay_pages.py",
    "tests/integration/invocations/sandbox/test_sandbox_page.py",
    "tests/integration/registry/dependencies/test_dependency_pages.py",
    "tests/integration/registry/installations/test_installation_pages.py",
)
# ... and on SQLite wording, protocols, signatures, files, and what programs answer.
ONLY_WITH_SQLITE = (
    "tests/integration/access/issuers/test_issuer_tokens.py",
    "tests/integration/api/test_body_types.py",
    "tests/integration/api/test_problem_catalogue.py",
    "tests/integration/api/test_remedies_at_each_door.py",
    "tests/integration/console/test_asset_names.py",
    "tests/integration/console/test_assets.py",
    "tests/integration/console/test_noun_packages.py",
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
# Many cases of rules, forms and formats over statements that Django writes or that other tests send to SQLite. `make test` runs them
# on PostgreSQL, which takes the fewest values, and `make test-all` on both. What commits, locks, waits, migrates or reads the log, and
# what searches or writes SQL of its own, is never here; and every list of the API is opened on both (test_list_queries.py).
SELDOM_WITH_SQLITE = (
    "tests/integration/access/agents/test_agents_and_keys.py",
    "tests/integration/access/connections/test_authorization.py",
    "tests/integration/access/connections/test_connection_attacks.py",
    "tests/integration/access/grants/test_grants_and_keys.py",
    "tests/integration/access/issuers/test_issuers_api.py",
    "tests/integration/access/members/test_members_api.py",
    "tests/integration/access/members/test_people.py",
    "tests/integration/access/object_permissions/test_object_permissions.py",
    "tests/integration/access/oauth/test_client_documents.py",
    "tests/integration/access/oauth/test_client_registration.py",
    "tests/integration/access/oauth/test_redirect_uris.py",
    "tests/integration/access/policies/test_policy_api.py",
    "tests/integration/access/sign_in/test_known_devices.py",
    "tests/integration/access/sign_in/test_sign_in.py",
    "tests/integration/access/sign_in/test_single_sign_on.py",
    "tests/integration/api/test_api.py",
    "tests/integration/api/test_query_parameters.py",
    "tests/integration/evidence/facts/test_leaves.py",
    "tests/integration/invocations/accept/test_bad_input.py",
    "tests/integration/invocations/accept/test_entry_paths.py",
    "tests/integration/invocations/accept/test_envelope.py",
    "tests/integration/invocations/accept/test_fuzzed_calls.py",
    "tests/integration/invocations/accept/test_late_refusals.py",
    "tests/integration/invocations/decide/test_call_profile.py",
    "tests/integration/invocations/decide/test_callable_tools.py",
    "tests/integration/invocations/decide/test_plan_preflights.py",
    "tests/integration/invocations/decide/test_preflight.py",
    "tests/integration/invocations/decide/test_preflight_rules.py",
    "tests/integration/invocations/dispatch/test_dispatch.py",
    "tests/integration/invocations/end/test_egress_reports.py",
    "tests/integration/invocations/end/test_obligation_enforcement.py",
    "tests/integration/invocations/end/test_output_repairs.py",
    "tests/integration/invocations/model_calls/served/test_chat_completions.py",
    "tests/integration/invocations/model_calls/served/test_controls.py",
    "tests/integration/invocations/model_calls/test_degraded_calls.py",
    "tests/integration/invocations/model_calls/test_fallback_models.py",
    "tests/integration/invocations/model_calls/test_held_files.py",
    "tests/integration/invocations/model_calls/test_model_reasoning.py",
    "tests/integration/invocations/model_calls/test_proposal_links.py",
    "tests/integration/invocations/model_calls/test_provider_rates.py",
    "tests/integration/invocations/model_calls/test_request_pictures.py",
    "tests/integration/invocations/model_calls/test_sent_data.py",
    "tests/integration/invocations/model_calls/test_stand_ins.py",
    "tests/integration/invocations/model_calls/test_unanswered_requests.py",
    "tests/integration/invocations/sandbox/test_sandbox_images.py",
    "tests/integration/invocations/test_artifacts.py",
    "tests/integration/invocations/test_direct_calls.py",
    "tests/integration/invocations/test_proposals.py",
    "tests/integration/registry/dependencies/test_dependencies.py",
    "tests/integration/registry/dependencies/test_dependency_hosts.py",
    "tests/integration/registry/installations/test_tool_installations.py",
    "tests/integration/registry/model_catalogue/test_model_pages.py",
    "tests/integration/registry/model_prices/test_price_pages.py",
    "tests/integration/registry/model_providers/test_connected_models.py",
    "tests/integration/registry/model_providers/test_kind_checks.py",
    "tests/integration/registry/model_providers/test_model_prefixes.py",
    "tests/integration/registry/model_providers/test_model_providers.py",
    "tests/integration/registry/model_providers/test_models_in_lists.py",
    "tests/integration/registry/model_providers/test_provider_pages.py",
    "tests/integration/registry/test_capsules.py",
    "tests/integration/registry/test_first_enabling.py",
    "tests/integration/registry/test_reviews.py",
    "tests/integration/registry/test_tool_lifecycle.py",
    "tests/integration/registry/versions/test_manifest_enforcement.py",
    "tests/integration/registry/versions/test_versions.py",
    "tests/integration/toolhub/configuration/test_configuration_commands.py",
    "tests/integration/toolhub/configuration/test_configuration_interfaces.py",
    "tests/integration/toolhub/configuration/test_configuration_object_permissions.py",
    "tests/integration/toolhub/configuration/test_configuration_rules.py",
    "tests/integration/toolhub/test_demonstration_models.py",
    "tests/integration/toolhub/test_tenant_commands.py",
)
# Hubs that are killed or lose a service, and the console in a browser. The others of tests/e2e share one hub.
BREAKING = (
    "tests/crash",
    "tests/mcp_conformance",
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
    """``shown``: it writes where people look, and says how far it is. The others are printed when they have ended."""

    says: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    sqlite: bool = False
    shown: bool = False

    def build_command(self, pytest: Sequence[str]) -> list[str]:
        cache = [] if self.shown else ["-p", "no:cacheprovider"]
        return [*pytest, *cache, *self.paths, *(f"--ignore={each}" for each in self.without)]

    def holds(self, test: str) -> bool:
        """Whether it runs the tests of this file."""
        within = [
            any(test == path or test.startswith(f"{path}/") for path in paths) for paths in (self.paths, self.without)
        ]
        return within == [True, False]


# Needs no image of the sandbox, so it runs while these are built.
FIRST = Part("units, guards and judges of others", ("tests/unit", "tests/guards", "tests/foreign"), sqlite=True)
# What takes longest is begun first. One part alone uses the database of the tests that is on PostgreSQL.
PARTS = (
    Part("tests on PostgreSQL", ("tests/integration", "tests/postgresql"), ONLY_WITH_SQLITE, shown=True),
    Part("hubs that are killed or lose a service, and the console", BREAKING, sqlite=True),
    Part(
        "integration tests on SQLite", ("tests/integration",), (*ONLY_WITH_POSTGRESQL, *SELDOM_WITH_SQLITE), sqlite=True
    ),
    Part("boxes", ("tests/attacks", "tests/contracts", "tests/egress"), sqlite=True),
    Part("whole hubs", ("tests/compose", "tests/e2e"), BREAKING, sqlite=True),
)
# Of `make test-all`.
WHOLE = tuple(
    replace(part, without=tuple(each for each in part.without if each not in SELDOM_WITH_SQLITE)) for part in PARTS
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


def run_parts(
    pytest: Sequence[str], env: dict[str, str], prepare: Callable[[], dict[str, str]], *, whole: bool = False
) -> int:
    """The first exit status that is not 0. ``prepare`` makes what all parts but the first need: more of their environment."""
    codes = []
    running: list[Run] = []
    with contextlib.ExitStack() as stack, _interrupted(running):
        running += [stack.enter_context(_begin(FIRST, pytest, env))]
        env = env | prepare()
        waiting = list(WHOLE if whole else PARTS)
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(stack.enter_context(_begin(waiting.pop(0), pytest, env)))
            time.sleep(LOOK_AGAIN_S)
            for run in [each for each in running if each.process.poll() is not None]:
                running.remove(run)
                codes.append(run.report())
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
