"""The catalogue of attacks: which attacks are there, and what may each of them end as?

An attack is a function below ``hostile/``: what it returns is what it got, and must be nothing. With ``then``, a second
call of the same tool looks for what the first has left, and must find nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass

from invocations.sandbox.base import Limits, RunStatus

OK, RAISED, BAD, SLOW = RunStatus.OK, RunStatus.RAISED, RunStatus.BAD_RESULT, RunStatus.TIMED_OUT
MEMORY, LARGE, FLOOD, EXITED = (
    RunStatus.OUT_OF_MEMORY,
    RunStatus.RESULT_TOO_LARGE,
    RunStatus.LOG_FLOOD,
    RunStatus.EXITED,
)
BLOCKED = RunStatus.CAPABILITY_BLOCKED

USUAL = Limits(wall_ms=6_000)
SOON = Limits(wall_ms=700)  # for what ends only because it is ended
QUIET = Limits(wall_ms=6_000, idle_ms=500)
NARROW = Limits(wall_ms=6_000, cpu_s=1)


@dataclass(frozen=True)
class Attack:
    name: str  # module and function below hostile/
    ends: tuple[RunStatus, ...] = (OK,)
    limits: Limits = USUAL
    then: str = ""

    def __str__(self) -> str:
        return self.name


def _left(what: str, then: str, ends: tuple[RunStatus, ...] = (OK,)) -> Attack:
    return Attack(f"lingering.leave_{what}", ends, then=f"lingering.find_{then}")


def _poisoned(what: str, then: str = "poisoning.find_nothing", ends: tuple[RunStatus, ...] = (OK,)) -> Attack:
    return Attack(f"poisoning.leave_{what}", ends, then=then)


EXHAUSTION = [
    Attack("exhaustion.processes"),
    Attack("exhaustion.fork_bomb", (SLOW,), SOON),
    Attack("exhaustion.zombies"),
    Attack("exhaustion.threads"),
    Attack("exhaustion.memory", (MEMORY,)),
    Attack("exhaustion.memory_by_children", (OK, MEMORY)),
    Attack("exhaustion.memory_in_files_without_names", (OK, MEMORY)),
    Attack("exhaustion.memory_that_is_locked"),
    Attack("exhaustion.maps", (OK, MEMORY, SLOW), SOON),
    Attack("exhaustion.stack", (RAISED, EXITED, MEMORY, SLOW), SOON),
    Attack("exhaustion.processor", (SLOW,), SOON),
    Attack("exhaustion.processor_by_threads", (SLOW,), SOON),
    Attack("exhaustion.processor", (SLOW,), NARROW),
    Attack("exhaustion.processor_by_a_chain", (SLOW,), NARROW),
    Attack("exhaustion.one_long_operation", (SLOW,), SOON),
    Attack("exhaustion.disk"),
    Attack("exhaustion.files"),
    Attack("exhaustion.deep_folders", (OK, SLOW), SOON),
    Attack("exhaustion.one_enormous_file"),
    Attack("exhaustion.names_moved_around"),
    Attack("exhaustion.descriptors"),
    Attack("exhaustion.sockets_in_flight"),
    Attack("exhaustion.buffers_of_sockets", (OK, MEMORY)),
    Attack("exhaustion.watches"),
    Attack("exhaustion.timers", (OK, MEMORY, SLOW), SOON),
    Attack("exhaustion.event_polls"),
    Attack("exhaustion.pipe_pages"),
    Attack("exhaustion.flood_of_output", (FLOOD,)),
    Attack("exhaustion.flood_by_children", (FLOOD,)),
    Attack("exhaustion.flood_of_tiny_writes", (FLOOD, SLOW), SOON),
    Attack("exhaustion.flood_of_progress", (FLOOD, SLOW), SOON),
    Attack("exhaustion.one_endless_line", (FLOOD, SLOW), SOON),
    Attack("exhaustion.slow_output", (SLOW,), SOON),
    Attack("exhaustion.huge_result", (LARGE,)),
    Attack("exhaustion.huge_result_past_the_runtime", (LARGE,)),
    Attack("exhaustion.huge_exception", (RAISED, FLOOD)),
]
FORGING = [
    Attack("forging.result_on_stdout"),
    Attack("forging.frames_on_every_descriptor"),
    Attack("forging.every_kind_of_frame"),
    Attack("forging.the_supervisors_channel"),
    Attack("forging.the_channels_socket"),
    Attack("forging.walls_that_never_rose"),
    Attack("forging.report_then_hang", (SLOW,), SOON),
    Attack("forging.garbage_then_hang", (SLOW,), SOON),
    Attack("forging.a_report_in_pieces", (SLOW,), SOON),
    Attack("forging.two_reports", (BAD,)),
    Attack("forging.report_that_promises_more", (BAD,)),
    Attack("forging.report_of_an_unknown_kind", (RAISED, BAD)),
    Attack("forging.report_that_nothing_ran", (RAISED, BAD)),
    Attack("forging.report_with_a_foreign_shape", (BAD,)),
    Attack("forging.error_code_of_the_platform", (RAISED,)),
    Attack("forging.progress_that_is_garbage"),
    Attack("forging.another_call_than_its_own"),
    Attack("forging.sockets_of_the_hub"),
]
CONTENT = [
    Attack("content.half_a_surrogate_pair", (BAD,)),
    Attack("content.half_a_pair_in_a_name", (BAD,)),
    Attack("content.nul", (BAD,)),
    Attack("content.a_name_with_nul", (BAD,)),
    Attack("content.a_key_twice", (BAD,)),
    Attack("content.not_a_number", (BAD,)),
    Attack("content.a_number_that_is_infinite", (BAD,)),
    Attack("content.a_number_of_a_thousand_digits", (BAD,)),
    Attack("content.a_hundred_thousand_brackets", (BAD,)),
    Attack("content.quotes_that_hide_brackets", (BAD,)),
    Attack("content.not_utf8", (BAD,)),
    Attack("content.two_values", (BAD,)),
    Attack("content.nothing_at_all", (BAD,)),
    Attack("content.a_mark_before_the_text", (BAD,)),
    Attack("content.text_that_lies"),
    Attack("content.a_value_that_changes_while_it_is_read", (OK, BAD)),
    Attack("content.exception_that_raises_when_shown", (RAISED,)),
    Attack("content.exception_that_never_ends", (SLOW,), SOON),
    Attack("content.exception_chain_in_a_circle", (BLOCKED, RAISED)),
    Attack("content.exception_with_a_forged_class", (RAISED,)),
    Attack("content.exception_without_end_of_causes", (RAISED, EXITED, FLOOD, SLOW, MEMORY)),
    Attack("content.exception_group_of_many", (RAISED, FLOOD)),
]
LEAKING = [
    Attack("leaking.environment"),
    Attack("leaking.memory_of_the_supervisor"),
    Attack("leaking.keys_in_memory"),
    Attack("leaking.what_the_box_was_told"),
    Attack("leaking.places_of_others"),
    Attack("leaking.the_runner_rewritten"),
    Attack("leaking.the_package_rewritten"),
    Attack("leaking.things_left_behind"),
    Attack("leaking.things_of_the_call_before"),
    Attack("leaking.a_process_in_the_background"),
    Attack("leaking.programs"),
]
LINGERING = [
    _left("files", "files"),
    _left("no_room", "files"),
    _left("an_open_file", "files"),
    _left("in_shared_places", "in_shared_places"),
    _left("a_process", "a_process"),
    _left("a_process_that_hops", "a_process"),
    _left("a_holder_of_the_pipes", "a_process", (EXITED,)),
    Attack("lingering.leave_a_process_for_the_next_child", (OK, SLOW), SOON, "lingering.find_a_process"),
    _left("threads", "process_numbers"),
    _left("no_process_numbers", "process_numbers"),
    _left("descriptors_in_flight", "files"),
    _left("other_pipes", "files"),
    _left("locks_and_timers", "files"),
]
POISONING = [
    _poisoned("poisoned_modules", ends=(OK, RAISED, BAD, EXITED, BLOCKED)),
    _poisoned("poisoned_memory", ends=(OK, RAISED, BAD, EXITED)),
    _poisoned("rewritten_code"),
    _poisoned("a_package_that_cannot_be_read"),
    _poisoned("a_secret", "poisoning.find_a_secret"),
    _poisoned("word_in_attributes", "poisoning.find_word_in_attributes"),
    _poisoned("other_limits", "lingering.find_process_numbers"),
    _poisoned("the_zygote_stopped"),
    _poisoned("the_zygote_signalled", ends=(OK, EXITED)),
    _poisoned("the_zygote_killed", "lingering.find_a_process", (OK, EXITED)),
]
SUPERVISOR = [
    Attack("supervisor.kill"),
    Attack("supervisor.trace"),
    Attack("supervisor.signals_by_descriptor"),
    Attack("supervisor.its_limits"),
    Attack("supervisor.its_memory_through_a_group"),
    Attack("supervisor.keys_typed_into_its_terminal"),
    Attack("supervisor.everybody_it_can", (EXITED,)),
    Attack("supervisor.die_as_if_memory_had_run_out", (EXITED,)),
    Attack("supervisor.say_it_was_a_forbidden_call", (BLOCKED, EXITED)),
    Attack("supervisor.stop_itself", (SLOW, EXITED), SOON),
    Attack("supervisor.ignore_being_asked_to_end", (SLOW,), SOON),
    Attack("supervisor.sleep_past_the_limit", (SLOW,), SOON),
    Attack("supervisor.sleep_past_the_limit", (SLOW,), QUIET),
    Attack("supervisor.hang_when_the_interpreter_ends", (OK, SLOW), SOON),
]
KERNEL = [
    Attack("kernel.system_calls"),
    Attack("kernel.rare_sockets"),
    Attack("kernel.another_user"),
    Attack("kernel.a_program_of_its_own"),
    Attack("kernel.a_program_by_the_loader"),
    Attack("kernel.code_from_a_file"),
    Attack("kernel.a_dump_of_memory"),
    Attack("kernel.devices"),
    Attack("kernel.limits_raised"),
    Attack("kernel.facts_about_the_host"),
    Attack("kernel.settings_of_the_kernel"),
    Attack("namespaces.enter_others"),
    Attack("namespaces.make_new_ones"),
    Attack("namespaces.map_users"),
    Attack("namespaces.capabilities"),
    Attack("namespaces.mounts"),
    Attack("namespaces.signals"),
    Attack("namespaces.processes_of_others"),
]
OUTSIDE = [
    Attack("outside.addresses"),
    Attack("outside.names"),
    Attack("outside.datagrams"),
    Attack("outside.a_web_page"),
    Attack("outside.a_server_for_others"),
    Attack("outside.links"),
    Attack("outside.the_engine"),
]
AT_IMPORT = [Attack("at_import.run", (SLOW, BAD, OK, RAISED), SOON)]

ATTACKS = [
    *EXHAUSTION,
    *FORGING,
    *CONTENT,
    *LEAKING,
    *LINGERING,
    *POISONING,
    *SUPERVISOR,
    *KERNEL,
    *OUTSIDE,
    *AT_IMPORT,
]
