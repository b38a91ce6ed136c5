"""Runtime lines: what ``doctor`` says about the runtimes of boxes and the walls around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from invocations.sandbox.engine import EngineError
from invocations.sandbox.isolation.runtimes import DEFAULT, UNTRUSTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from invocations.sandbox.isolation.check_results import IsolationChecks
    from invocations.sandbox.isolation.isolation_check import IsolationResult

OK, WRONG, NOTE = "ok", "WRONG", "note"
_NOBODY = "none is set aside for untrusted tools, so their calls are refused; TOOLHUB_SANDBOX_RUNTIMES names one"
_REMAPPED = "users are remapped"
_NOT_REMAPPED = "users are not remapped (userns-remap in the engine's daemon.json gives a box's root no rights outside)"


class DoctorLine(NamedTuple):
    mark: str
    about: str
    said: str


def describe_runtimes(examinations: IsolationChecks, names: Mapping[str, str], *, every: bool) -> Iterator[DoctorLine]:
    """``every``: each wall, looked at anew. Else what was seen lately, in a line for each runtime and each wall that fell."""
    roles: dict[str, list[str]] = {names.get(DEFAULT, ""): [DEFAULT]}
    if UNTRUSTED in names:
        roles.setdefault(names[UNTRUSTED], []).append(UNTRUSTED)
    for name, used in roles.items():
        seen = examinations.of(name, anew=every)
        yield from _runtime(seen, " and ".join(used))
        yield from _walls(seen, every=every)
    if UNTRUSTED not in names:
        yield DoctorLine(NOTE, "runtime", _NOBODY)
    try:
        yield DoctorLine(NOTE, "host", _host(examinations.engine.info()))
    except EngineError as error:
        yield DoctorLine(WRONG, "host", str(error))


def _runtime(seen: IsolationResult, used: str) -> Iterator[DoctorLine]:
    name = f"{seen.runtime or 'the engine’s own'} ({used})"
    if seen.why:
        yield DoctorLine(WRONG, "runtime", f"{name}: not verified on this host. {seen.why}")
        return
    how = {"socket": "boxes reach a unix socket of this host", "attach": "boxes are reached through the engine only"}
    levels = ", ".join(seen.levels) or "no level of isolation can be given"
    said = f"{name}: {seen.holding} of {len(seen.walls)} walls hold; {levels}; {how[seen.transport]}"
    if seen.label:
        said += f"; labelled {seen.label}"
    yield DoctorLine(OK if not seen.missing and seen.levels else WRONG, "runtime", said)


def _walls(seen: IsolationResult, *, every: bool) -> Iterator[DoctorLine]:
    for wall in seen.walls:
        if wall.holds:
            if every:
                yield DoctorLine(OK, "wall", f"{wall.name}: {wall.detail}")
            continue
        how = "does not hold" if wall.holds is False else "could not be verified"
        needed = "" if wall.needed_for_untrusted else " (untrusted tools do without)"
        yield DoctorLine(
            WRONG if wall.needed_for_untrusted else NOTE, "wall", f"{wall.name} {how}{needed}: {wall.detail}"
        )


def _host(info: dict[str, Any]) -> str:
    """What an engine says of itself. No wall is counted on for it."""
    options = {option.removeprefix("name=").split(",")[0] for option in info.get("SecurityOptions") or []}
    labels = [name for name, label in (("AppArmor", "apparmor"), ("SELinux", "selinux")) if label in options]
    runtimes = sorted(name for name in info.get("Runtimes") or {} if not name.startswith("io.containerd."))
    facts = [
        f"Linux {info.get('KernelVersion', '?')}",
        f"control groups v{info.get('CgroupVersion', '?')}",
        " and ".join(labels) or "no AppArmor, no SELinux",
        _REMAPPED if "userns" in options else _NOT_REMAPPED,
        f"runtimes {', '.join(runtimes)}",
    ]
    if "rootless" in options:
        facts.append("the engine itself runs without root")
    return "; ".join(facts)
