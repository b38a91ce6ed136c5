"""Input validation: whether these arguments may be given to this version of a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.metrics.call_metrics import count_validation
from kernel.problems import SchemaInvalid, TooLarge
from registry.problems import ToolRetired
from unitools.checks import describe_violation
from unitools.deprecations import find_argument_deprecations
from unitools.strict_json import measure_depth

if TYPE_CHECKING:
    from datetime import date

    import jsonschema_rs

    from registry.versions.compiler import CompiledVersion

MAX_FINDINGS = 20


def collect_findings(validator: jsonschema_rs.Validator, value: Any, *, to_sender: bool = True) -> list[dict[str, str]]:
    """``to_sender``: whether they are read by whoever sent the value; others see no name that only the value has."""
    found = []
    for error in validator.iter_errors(value):
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.instance_path)
        found.append({"pointer": pointer, "message": describe_violation(error, to_sender=to_sender)})
        if len(found) == MAX_FINDINGS:
            break
    return found


def check_input(version: CompiledVersion, arguments: Any, body: bytes, *, today: date) -> None:
    """``body``: the arguments as they are counted and hashed."""
    size = len(body)
    if size > version.max_bytes_in:
        raise TooLarge(
            f"The arguments are {size:,} bytes; this tool takes {version.max_bytes_in:,}.",
            details={"max_bytes": version.max_bytes_in},
            remedy=f"Send at most {version.max_bytes_in:,} bytes of arguments.",
        )
    if (depth := measure_depth(body)) > version.max_depth:
        raise SchemaInvalid.at(
            "", f"The arguments are nested {depth} levels deep; this tool takes {version.max_depth}."
        )
    valid = version.input_validator.is_valid(arguments)
    count_validation("input", valid=valid)
    if valid:
        check_not_sunset(version, arguments, today=today)
        return
    findings = collect_findings(version.input_validator, arguments)
    first = findings[0]
    raise SchemaInvalid(
        f"The arguments do not match the tool's input schema: {first['message']} (at {first['pointer'] or '/'})",
        details={"findings": findings},
        remedy=f"Correct what the findings name; the input schema stands beside {version.manifest.id} in the list of tools.",
    )


def check_not_sunset(version: CompiledVersion, arguments: Any, *, today: date) -> None:
    """Refuse an argument whose sunset, as the manifest announced it, has come."""
    for pointer, said in find_argument_deprecations(version.manifest, arguments, today=today):
        raise ToolRetired(
            f"The argument {pointer} of {version.manifest.id} is gone since {said['sunset']}: {said['advice']}",
            details={"pointer": pointer, "sunset_on": said["sunset"], "successor": said.get("successor")},
            remedy=f"Leave {pointer} out. {said['advice']}",
        )
