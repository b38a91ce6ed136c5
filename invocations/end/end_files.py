"""End files: which files stay of a call that has ended, the tenant's and those that its tool keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.files.services import KeptFiles, keep_files, keep_nothing
from invocations.models import Invocation, State
from invocations.run_profiles.services import load_profile
from invocations.tool_files.services import ToolFilesChange, describe_unchanged, keep_tool_files
from invocations.value_keys import find_values_key, is_forgotten
from kernel.ids import encode

if TYPE_CHECKING:
    from invocations.end.endings import Ending


def keep_files_of_call(invocation: Invocation, ending: Ending) -> KeptFiles:
    """Only a call that succeeded leaves files; of any other nothing is kept."""
    outcome = ending.outcome
    if outcome is None:
        return KeptFiles()
    if ending.state != State.SUCCEEDED:
        return keep_nothing(outcome, ending.inputs, "the call did not succeed")
    if is_forgotten(invocation):
        return keep_nothing(outcome, ending.inputs, "the values of this call were erased")
    reach = load_profile(invocation).capabilities
    return keep_files(
        outcome, reach, ending.inputs, key=find_values_key(invocation), by=encode("agt", invocation.agent_id)
    )


def keep_files_of_tool(invocation: Invocation, ending: Ending) -> ToolFilesChange | None:
    """None of a tool that keeps none, and where nothing ran."""
    outcome = ending.outcome
    # A model's call has no outcome: its End does not look at the manifest, which would be a question more.
    if outcome is None or invocation.version is None:
        return None
    manifest = invocation.version.view
    if manifest.state is None:
        return None
    if ending.state != State.SUCCEEDED or invocation.dry_run or is_forgotten(invocation) or not manifest.leaves_files:
        return describe_unchanged(invocation, manifest, ending.inputs)
    return keep_tool_files(invocation, manifest, outcome, ending.inputs)
