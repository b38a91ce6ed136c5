"""Configuration findings: what is wrong with a configuration file, and where."""

from __future__ import annotations

from typing import Any

from toolhub.configuration.problems import ConfigurationInvalid

MAX_FINDINGS = 50
Finding = dict[str, str]


def build_finding(pointer: str, message: str) -> Finding:
    """``pointer`` is a JSON Pointer into the file."""
    return {"pointer": pointer, "message": message}


def escape_pointer_step(name: Any) -> str:
    """One step of a pointer."""
    return str(name)[:80].replace("~", "~0").replace("/", "~1")


def build_invalid_problem(pointer: str, message: str, *, remedy: str = "") -> ConfigurationInvalid:
    """The problem of one finding."""
    where = f" (at {pointer})" if pointer else ""
    return ConfigurationInvalid(message + where, details={"findings": [build_finding(pointer, message)]}, remedy=remedy)


def raise_findings(findings: list[Finding]) -> None:
    """Raise what the findings make; nothing when there are none."""
    if findings:
        first = findings[0]
        more = f" There are {len(findings)} findings in all." if len(findings) > 1 else ""
        raise ConfigurationInvalid(
            f"{first['message']} (at {first['pointer'] or '/'}){more}",
            details={"findings": findings[:MAX_FINDINGS]},
            remedy="Nothing was changed. Correct the file, then plan it again.",
        )
