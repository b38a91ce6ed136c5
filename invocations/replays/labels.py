"""Replay labels: how the outcomes of a replay are said to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

from invocations.replays.models import What

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

WHAT: dict[str, StrOrPromise] = {
    What.FACTS: gettext_lazy("Rebuild calls from their facts"),
    What.DECISIONS: gettext_lazy("Decide again"),
    What.RUNS: gettext_lazy("Run again in a sandbox"),
    What.TRIAL: gettext_lazy("Try a version with written arguments"),
}
# Why a call cannot be run again.
WHY: dict[str, StrOrPromise] = {
    "not_ended": gettext_lazy("The call has not ended."),
    "nothing_ran": gettext_lazy("The tool was never run: the call was refused, or ended before."),
    "cut_off": gettext_lazy("The run was cut off, so there is no end to compare with."),
    "no_values": gettext_lazy("The arguments are no longer kept."),
    "erased": gettext_lazy("The values of the person whom the call was made for were erased."),
    "profile": gettext_lazy("What the call was allowed to reach is not stored any more, or was changed."),
    "key_unavailable": gettext_lazy("The key of the stored values is not available."),
    "code_changed": gettext_lazy("The code of this version is no longer on the workers, or has changed."),
    "dependencies": gettext_lazy("The packages that the tool needs are not on the worker."),
    "image_gone": gettext_lazy("The image that the call ran in is no longer on the worker."),
    "no_box": gettext_lazy("No sandbox could be started from this image."),
    "untrusted": gettext_lazy(
        "A policy calls this code untrusted, and no sandbox could be started that may run such code."
    ),
    "network": gettext_lazy("The tool needs the network, which no replay has."),
    "model": gettext_lazy("A model was called. Another answer of its provider proves nothing about the first."),
    "browser": gettext_lazy("The tool needs a browser with a network, which no replay has."),
    "secrets": gettext_lazy("The tool needs a secret, which no replay has."),
    "files": gettext_lazy("The tool needs the tenant's files, which no replay has."),
    "config": gettext_lazy("The tool's configuration has changed since."),
    "config_unfit": gettext_lazy("The tool's configuration here does not match the config_schema of this version."),
    "not_taken": gettext_lazy("The version does not take these arguments: its input schema refuses them."),
    "version_refused": gettext_lazy("The version was refused by its reviewer, and is not run any more."),
    "version_yanked": gettext_lazy("This version was yanked, and is not run any more."),
    "version_decided": gettext_lazy("The version was decided about before the trial could run."),
    "may_not_try": gettext_lazy("Whoever asked for the trial may not try this version any more."),
    "halted": gettext_lazy("A kill switch stops calls of this tool, so it was not run."),
}
# What was another thing than in the call; or was found beside the verdict.
NOTE: dict[str, StrOrPromise] = {
    "other_version": gettext_lazy("Run with another version of the tool."),
    "under_review": gettext_lazy("A try by a reviewer: nobody had approved the version when it ran."),
    "todays_image": gettext_lazy("Run in the current image."),
    "ran_directly": gettext_lazy("The call ran directly on the worker; the replay ran in a box."),
    "no_seed": gettext_lazy("The call predates the recording of random numbers, so they differ."),
    "program_clock": gettext_lazy("The tool is a program: it saw the clock of the machine."),
    "config": gettext_lazy("The tool's configuration has changed since."),
    "without_network": gettext_lazy("Run without the network that the call had."),
    "without_browser": gettext_lazy("Run without the browser that the call had."),
    "without_secrets": gettext_lazy("Run without the secrets that the call had."),
    "without_files": gettext_lazy("Run without the files that the call had."),
    "trial_without_network": gettext_lazy("Run without the network that the version asks for."),
    "trial_without_browser": gettext_lazy("Run without the browser that the version asks for."),
    "trial_without_secrets": gettext_lazy("Run without the secrets that the version asks for."),
    "trial_without_files": gettext_lazy("Run without the files that the version asks for."),
    "ignored": gettext_lazy("Places that the manifest names under determinism were not compared."),
    "not_compared": gettext_lazy("The manifest says that outputs differ each time: they were not compared."),
    "digest_only": gettext_lazy("The result is no longer kept: only its digest was compared."),
    "raw_same": gettext_lazy("The tool returned the same as then, before the obligations of the policy."),
    "raw_other": gettext_lazy("The tool returned a different result, before the obligations of the policy."),
}
# What is compared when a call is rebuilt from its facts, or decided again.
FIELDS: dict[str, StrOrPromise] = {
    "begin": gettext_lazy("Begin"),
    "leaves": gettext_lazy("Text and hash of its facts"),
    "pair": gettext_lazy("Begin and End"),
    "state": gettext_lazy("State"),
    "row": gettext_lazy("The stored call"),
    "agent": gettext_lazy("Agent"),
    "account": gettext_lazy("Server account"),
    "tool": gettext_lazy("Tool"),
    "created_at": gettext_lazy("Received"),
    "finished_at": gettext_lazy("Ended"),
    "reason": gettext_lazy("Reason"),
    "attempt": gettext_lazy("Run"),
    "retries": gettext_lazy("Runs after a crash"),
    "dry_run": gettext_lazy("Dry run"),
    "origin": gettext_lazy("Origin"),
    "request_id": gettext_lazy("Request id"),
    "version": gettext_lazy("Version of the tool"),
    "manifest": gettext_lazy("Manifest"),
    "build": gettext_lazy("Code"),
    "policy": gettext_lazy("Policy"),
    "policy_hash": gettext_lazy("Hash of the policy"),
    "grant": gettext_lazy("Grant"),
    "consent": gettext_lazy("Consent"),
    "profile": gettext_lazy("Profile"),
    "profile_document": gettext_lazy("Stored profile"),
    "obligations": gettext_lazy("Obligations"),
    "sources": gettext_lazy("Sources"),
    "resolution": gettext_lazy("Outcome"),
    "image": gettext_lazy("Image"),
    "box": gettext_lazy("Box"),
    "budget": gettext_lazy("Budgets"),
    "level": gettext_lazy("Isolation"),
    "error": gettext_lazy("Commitment to the error"),
    "logs": gettext_lazy("Commitment to the output of the process"),
    "error_value": gettext_lazy("Stored error"),
    "logs_value": gettext_lazy("Stored output of the process"),
    "input": gettext_lazy("Commitment to the arguments"),
    "output": gettext_lazy("Commitment to the result"),
    "input_value": gettext_lazy("Stored arguments"),
    "output_value": gettext_lazy("Stored result"),
    "output_digest": gettext_lazy("Digest of the result"),
    "decision": gettext_lazy("Policy decision"),
    "decision_input": gettext_lazy("Decision input"),
    "allowed": gettext_lazy("Allowed or denied"),
    "rules": gettext_lazy("Rules"),
}
