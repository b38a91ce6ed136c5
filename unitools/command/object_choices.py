"""Object choices: what an author says of each object that is brought, by the options of a run, at a terminal or in an earlier run.

An option is said of the objects that the run names and of no other. What is said of one is kept beside the source files, by its
reference; an object that was not there before has nothing of another's.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from unitools.checks.credentials import is_secret_variable
from unitools.command.object_trials import NAME
from unitools.command.terminal import CannotRun, format_shown
from unitools.object_drafts import ObjectChoices
from unitools.server_secrets import advise_secret

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from unitools.command.object_trials import ObjectTrial

EFFECTS = ("None", "Read", "Write", "Network", "Filesystem", "Process", "Browser")


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--effect", choices=EFFECTS, default="", help="of each; Write where nobody says")
    command.add_argument(
        "--secret", action="append", default=[], metavar="NAME", help="of the environment, kept in the hub"
    )
    command.add_argument(
        "--environment", action="append", default=[], metavar="NAME=VALUE", help="what it finds there beside secrets"
    )
    command.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="that the tools may reach by https"
    )
    command.add_argument(
        "--inject",
        action="append",
        default=[],
        metavar="PARAMETER=KEY",
        help="where a parameter comes from that no model gives: config.NAME, secret.NAME or call.FIELD",
    )
    command.add_argument("--guess", action="store_true", help="take the hosts and secrets that the source names")


def read_options(options: argparse.Namespace) -> ObjectChoices:
    """What this run says of the objects that it names."""
    for each in options.secret:
        if not NAME.fullmatch(each):
            raise CannotRun(f"--secret is a name of the environment. A value never stands here.{advise_secret(each)}")
    pairs = {option: _read_pairs(option, getattr(options, option)) for option in ("environment", "inject")}
    if named := [name for name, value in pairs["environment"].items() if is_secret_variable(name, value)]:
        raise CannotRun(
            f"--environment {named[0]} looks like a secret, and its value would travel as plain text. Say --secret {named[0]}: each "
            "tenant keeps its own in the hub. If it is none, set it in the source file."
        )
    return ObjectChoices(
        options.effect, tuple(options.secret), tuple(options.host), pairs["environment"], pairs["inject"]
    )


def _read_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    found = [each.partition("=") for each in texts]
    if wrong := [name for name, sign, _ in found if not sign or not NAME.fullmatch(name)]:
        raise CannotRun(f"--{option} is NAME=…, not {wrong[0][:60]!r}.")
    return {name: value for name, _, value in found}


def read_kept(kept: Mapping[str, Any]) -> ObjectChoices:
    """What an earlier run was told of one object. Raises :class:`ValueError` where no option could have said so."""
    effect, hosts = kept.get("effect", ""), kept.get("hosts", [])
    if effect not in ("", *EFFECTS):
        raise ValueError(f"{str(effect)[:60]!r} is no effect")
    if not (isinstance(hosts, list) and all(isinstance(each, str) for each in hosts)):
        raise ValueError("hosts are texts")
    secrets = kept.get("secrets", [])
    pairs = {name: kept.get(name, {}) for name in ("environment", "injected")}
    for name in (*secrets, *pairs["environment"], *pairs["injected"]):
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise ValueError(f"{str(name)[:60]!r} is no name")
    if not all(isinstance(value, str) for each in pairs.values() for value in each.values()):
        raise ValueError("values are texts")
    return ObjectChoices(effect, tuple(secrets), tuple(hosts), pairs["environment"], pairs["injected"])


def write_kept(choices: ObjectChoices) -> dict[str, Any]:
    """What :func:`read_kept` reads; constraints are of all objects and kept once."""
    return {name: value for name, value in asdict(choices).items() if name != "constraints"}


def merge_choices(kept: ObjectChoices, said: ObjectChoices) -> ObjectChoices:
    """What is said now, and else what was said of the same object before."""
    return ObjectChoices(
        said.effect or kept.effect,
        said.secrets or kept.secrets,
        said.hosts or kept.hosts,
        said.environment or kept.environment,
        said.injected or kept.injected,
        said.constraints,
    )


def ask_choices(
    choices: Mapping[str, ObjectChoices], trials: Iterable[ObjectTrial], *, take: bool
) -> dict[str, ObjectChoices]:
    """What the source of each object names and nobody has said of it: asked at a terminal, taken with ``--guess``. A name that
    several of them have is asked for once."""
    asks = sys.stdin.isatty() and not take
    answers: dict[str, bool] = {}
    found = dict(choices)

    def is_taken(name: str, question: str) -> bool:
        if name not in answers:
            answers[name] = take or (asks and _confirm(question))
        return answers[name]

    for trial in trials:
        said = found[trial.reference]
        secrets = [
            name
            for name, place in trial.find_secrets([*said.secrets, *said.environment]).items()
            if is_taken(name, f"{name} is read at {place}. Is it a secret of the tenant?")
        ]
        hosts = [
            host
            for host, place in trial.scan.hosts.items()
            if host not in said.hosts and is_taken(host, f"{host} is named at {place}. May the tools reach it?")
        ]
        effect = said.effect
        if asks and not effect:
            effect = _choose(f"What does {trial.reference} do outside?", trial.guessed_effect)
        found[trial.reference] = replace(
            said, secrets=(*said.secrets, *secrets), hosts=(*said.hosts, *hosts), effect=effect
        )
    return found


def _confirm(question: str) -> bool:
    sys.stderr.write(f"{format_shown(question, 300)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _choose(question: str, guess: str) -> str:
    while True:
        sys.stderr.write(f"{format_shown(question, 300)} {', '.join(EFFECTS)} [{guess}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        answer = line.strip() or guess
        if answer in EFFECTS or not line:
            return answer
