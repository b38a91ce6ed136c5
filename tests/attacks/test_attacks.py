"""Does anything that a hostile tool does reach beyond its own call?

Each attack runs in a sandbox of its own, and is followed by an innocent call that must be right. What an attack may end
as is part of its row; whatever it returns is what it got, and must be nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, Profile, Status
from invocations.sandbox.docker import INSTANCE, DockerSandbox
from invocations.sandbox.engine import Engine
from tests.boxes import call_of, docker_sandbox, package_of
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Iterator

OK, RAISED, BAD, SLOW = Status.OK, Status.RAISED, Status.BAD_RESULT, Status.TIMED_OUT
MEMORY, LARGE, FLOOD, EXITED = Status.OUT_OF_MEMORY, Status.RESULT_TOO_LARGE, Status.LOG_FLOOD, Status.EXITED
BLOCKED = Status.CAPABILITY_BLOCKED
WALL_MS = 4_000
LIMITS = Limits(wall_ms=WALL_MS)


@dataclass(frozen=True)
class Attack:
    name: str  # module and function below hostile/
    ends: tuple[Status, ...] = (OK,)
    limits: Limits = LIMITS

    def __str__(self) -> str:
        return self.name


SOON = Limits(wall_ms=1_500)
ATTACKS = [
    Attack("exhaustion.processes"),
    Attack("exhaustion.fork_bomb", (SLOW,), SOON),
    Attack("exhaustion.threads"),
    Attack("exhaustion.memory", (MEMORY,)),
    Attack("exhaustion.memory_by_children", (OK, MEMORY)),
    Attack("exhaustion.memory_in_files_without_names", (OK, MEMORY)),
    Attack("exhaustion.processor", (SLOW,), SOON),
    Attack("exhaustion.processor_by_threads", (SLOW,), SOON),
    Attack("exhaustion.disk"),
    Attack("exhaustion.files"),
    Attack("exhaustion.deep_folders"),
    Attack("exhaustion.descriptors"),
    Attack("exhaustion.pipe_pages"),
    Attack("exhaustion.flood_of_output", (FLOOD,)),
    Attack("exhaustion.slow_output", (SLOW,), SOON),
    Attack("exhaustion.huge_result", (LARGE,)),
    Attack("exhaustion.huge_result_past_the_runtime", (LARGE,)),
    Attack("exhaustion.huge_exception", (RAISED, FLOOD)),
    Attack("forging.result_on_stdout"),
    Attack("forging.frames_on_every_descriptor"),
    Attack("forging.the_supervisors_channel"),
    Attack("forging.report_then_hang", (SLOW,), SOON),
    Attack("forging.garbage_then_hang", (SLOW,), SOON),
    Attack("forging.two_reports", (BAD,)),
    Attack("forging.report_that_promises_more", (BAD,)),
    Attack("forging.report_of_an_unknown_kind", (RAISED, BAD)),
    Attack("forging.report_that_nothing_ran", (RAISED, BAD)),
    Attack("forging.report_with_a_foreign_shape", (BAD,)),
    Attack("forging.error_code_of_the_platform", (RAISED,)),
    Attack("forging.sockets_of_the_hub"),
    Attack("content.half_a_surrogate_pair", (BAD,)),
    Attack("content.nul", (BAD,)),
    Attack("content.a_key_twice", (BAD,)),
    Attack("content.not_a_number", (BAD,)),
    Attack("content.a_number_of_a_thousand_digits", (BAD,)),
    Attack("content.a_hundred_thousand_brackets", (BAD,)),
    Attack("content.not_utf8", (BAD,)),
    Attack("content.text_that_lies"),
    Attack("content.exception_that_raises_when_shown", (RAISED,)),
    Attack("content.exception_that_never_ends", (SLOW,), SOON),
    Attack("content.exception_chain_in_a_circle", (BLOCKED, RAISED)),
    Attack("content.exception_with_a_forged_class", (RAISED,)),
    Attack("leaking.environment"),
    Attack("leaking.memory_of_the_supervisor"),
    Attack("leaking.keys_in_memory"),
    Attack("leaking.the_runner_rewritten"),
    Attack("leaking.the_package_rewritten"),
    Attack("leaking.things_left_behind"),
    Attack("leaking.things_of_the_call_before"),
    Attack("leaking.a_process_in_the_background"),
    Attack("leaking.every_place_that_can_be_written_to"),
    Attack("leaking.programs"),
    Attack("supervisor.kill"),
    Attack("supervisor.trace"),
    Attack("supervisor.signals_by_descriptor"),
    Attack("supervisor.its_limits"),
    Attack("supervisor.keys_typed_into_its_terminal"),
    Attack("supervisor.everybody_it_can", (EXITED,)),
    Attack("supervisor.stop_itself", (SLOW,), SOON),
    Attack("supervisor.ignore_being_asked_to_end", (SLOW,), SOON),
    Attack("kernel.system_calls"),
    Attack("kernel.rare_sockets"),
    Attack("kernel.another_user"),
    Attack("kernel.a_program_of_its_own"),
    Attack("kernel.code_from_a_file"),
    Attack("kernel.limits_raised"),
    Attack("kernel.facts_about_the_host"),
    Attack("kernel.settings_of_the_kernel"),
    Attack("outside.addresses"),
    Attack("outside.names"),
    Attack("outside.datagrams"),
    Attack("outside.a_web_page"),
    Attack("outside.a_server_for_others"),
    Attack("outside.links"),
    Attack("outside.the_engine"),
    Attack("at_import.run", (SLOW, BAD, OK, RAISED), SOON),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="module")
def hostile() -> bytes:
    return build_zip(Path(__file__).with_name("hostile"))


@pytest.fixture(scope="module")
def innocent(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return package_of(tmp_path_factory.mktemp("innocent"), main="import os\ndef run(a): return [a, os.listdir('/w')]")


@pytest.mark.attack
@pytest.mark.req("SVC-10", "TOOLS-17")
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_contained(attack: Attack, sandbox: DockerSandbox, hostile: bytes, innocent: bytes) -> None:
    module, function = attack.name.split(".")
    begun = time.monotonic()

    outcome = sandbox.run(Profile(attack.limits), call_of(hostile, module=f"hostile.{module}", entry=function))

    assert outcome.status in attack.ends, outcome
    assert not outcome.value, outcome.value
    assert len(outcome.stdout) <= LIMITS.log_bytes
    assert len(outcome.stderr) <= LIMITS.log_bytes
    assert outcome.duration_ms < attack.limits.wall_ms + 1_000
    assert time.monotonic() - begun < attack.limits.wall_ms / 1000 + 8
    after = sandbox.run(Profile(), call_of(innocent, a=attack.name))
    assert (after.status, after.value) == (OK, [attack.name, []]), after


@pytest.mark.attack
def test_nothing_is_left_of_all_that(sandbox: DockerSandbox) -> None:
    engine = Engine()
    deadline = time.monotonic() + 5
    while engine.find({INSTANCE: sandbox._instance}) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert engine.find({INSTANCE: sandbox._instance}) == []
    engine.close()
