"""Results: what may be believed of what a tool's process said.

Its value and its report come as bytes from code that may be hostile. They are parsed strictly, in an order in which
no step can be made expensive: size, depth, UTF-8, then JSON without any of its grey areas (NaN, huge numbers,
duplicate keys, lone surrogates, NUL, which PostgreSQL refuses).
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

from invocations.sandbox.base import LeftArtifact, Limits, RunOutcome, RunStatus, TenantFile
from sandbox import protocol, run_monitor
from unitools.strict_json import JsonReader, JsonRefused

IDLE, PROCESSOR = "idle", "processor"  # the error_code of a TIMED_OUT that was not the wall clock's
SCHEMA = "schema"  # the error_code of a BAD_RESULT that is JSON, but not what the tool declares
ARTIFACTS = "artifacts"  # the error_code of a RESULT_TOO_LARGE for want of room for them
NOT_IMPORTED = "The tool's own modules were not imported in time, so it was not called."
MAX_ARTIFACT_NAME = 120
_MAX_INT_CHARS = 20
_MAX_FLOAT_CHARS = 64
_MAX_ERROR_CHARS = 2000
_MAX_REPORT_ITEMS = 100
_MAX_REPORT_CHARS = 500
_REPORT_DEPTH = 16
_MAX_WAITED_MS = 86_400_000
_MAX_TTL_S = 365 * 24 * 60 * 60  # as in the manifest
_SIGXCPU, _SIGKILL, _SIGSYS = 24, 9, 31
_NEARLY_MS = 500  # of a second

_ERROR_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class NotStrictJson(ValueError):
    """The bytes are not JSON that can be stored and passed on. The message says what is wrong."""


def _read_whole(text: str) -> int:
    if len(text) > _MAX_INT_CHARS:
        raise JsonRefused("huge_number", f"An integer has more than {_MAX_INT_CHARS} characters.")
    return int(text)


def _read_fraction(text: str) -> float:
    number = float(text) if len(text) <= _MAX_FLOAT_CHARS else math.inf
    if math.isinf(number):
        raise JsonRefused("huge_number", "A number is too large or too long.")
    return number


_READER = JsonReader(read_whole=_read_whole, read_fraction=_read_fraction, takes_nul=False)


def parse_strict(data: bytes, *, max_bytes: int, max_depth: int) -> Any:
    try:
        return _READER.read(data, max_bytes=max_bytes, max_depth=max_depth)
    except JsonRefused as refusal:
        sentences = {
            "too_large": f"It has {len(data)} bytes, {max_bytes} are allowed.",
            "too_deep": f"It is nested deeper than {max_depth} levels.",
            "bad_encoding": "It is not UTF-8.",
            "not_a_number": f"{refusal.subject} is not JSON.",
            "duplicate_key": "An object names a key twice.",
            "nul": "A string holds a NUL character.",
            "bad_text": "A string holds half of a surrogate pair.",
        }
        if syntax := refusal.syntax:
            raise NotStrictJson(f"It is not JSON: {syntax.msg} at character {syntax.pos}.") from None
        raise NotStrictJson(sentences.get(refusal.code, str(refusal))) from None


def check_report(report: Any) -> dict[str, Any]:
    """The shape of ``unitools.runtime.Report.to_json()``; an empty report is filled up."""
    if not isinstance(report, dict) or not set(report) <= {"sources", "warnings", "ttl_seconds"}:
        raise NotStrictJson("The report is not an object with sources, warnings and ttl_seconds.")
    sources, warnings, ttl = report.get("sources", []), report.get("warnings", []), report.get("ttl_seconds")
    if not _is_short_list(sources) or not all(
        isinstance(source, dict)
        and set(source) == {"type", "name", "version"}
        and all(map(_is_short_text, source.values()))
        for source in sources
    ):
        raise NotStrictJson(
            f"Sources are at most {_MAX_REPORT_ITEMS}, each with type, name and version as short texts."
        )
    if not _is_short_list(warnings) or not all(map(_is_short_text, warnings)):
        raise NotStrictJson(
            f"Warnings are at most {_MAX_REPORT_ITEMS} sentences of at most {_MAX_REPORT_CHARS} characters."
        )
    if ttl is not None and (not isinstance(ttl, int) or isinstance(ttl, bool) or not 0 <= ttl <= _MAX_TTL_S):
        raise NotStrictJson(f"The TTL is not a number of seconds up to {_MAX_TTL_S}.")
    return {"sources": sources, "warnings": warnings, "ttl_seconds": ttl}


def _is_short_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_REPORT_ITEMS


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_REPORT_CHARS


def read_result(head: dict[str, Any], parts: list[bytes], limits: Limits) -> dict[str, Any]:
    """The fields of a :class:`RunOutcome`: ``head`` is the runner's word, ``parts`` are the tool's."""
    said, stdout, stderr, *contents = parts
    fields: dict[str, Any] = {
        "stdout": _text(stdout),
        "stderr": _text(stderr),
        "duration_ms": head["run_ms"],
        "cpu_ms": head["cpu_ms"],
        "cpu_exact": head.get("cpu_exact", False),
        "max_rss_bytes": head["max_rss_bytes"],
        "clean": head["clean"],
    }
    fields |= _forced_end(head, limits) or _tools_word(said, head, limits)
    return fields | _files(head, contents) if fields["status"] is RunStatus.OK else fields


def _files(head: dict[str, Any], contents: list[bytes]) -> dict[str, Any]:
    """What a run that went well has left in the tenant's tree, and what is gone from there."""
    found = zip(head.get("files", ()), contents, strict=True)
    return {
        "files": tuple(TenantFile(each["path"], content) for each, content in found),
        "gone": tuple(head.get("gone", ())),
        "skipped": tuple((each["path"], each["why"]) for each in head.get("skipped", ())),
    }


def _forced_end(head: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What was done to the tool. Its own word does not count then."""
    match head["ended"]:
        case run_monitor.LOAD_TIMED_OUT:
            limit = {"import_s": head["import_ms"] / 1000}
            return _error(RunStatus.LOAD_TIMED_OUT, NOT_IMPORTED) | {"error_details": limit}
        case run_monitor.TIMED_OUT:
            return _error(RunStatus.TIMED_OUT, f"The tool ran longer than {limits.wall_ms} ms and was stopped.")
        case run_monitor.SPENT:
            return _out_of_processor_time(limits)
        case run_monitor.IDLED:
            idled = _error(RunStatus.TIMED_OUT, f"The tool said nothing for {limits.idle_ms} ms and was stopped.")
            return idled | {"error_code": IDLE}
        case run_monitor.ZYGOTE_GONE:
            return _error(RunStatus.LOST, "The process that the tool was started from ended while the tool ran.")
        case run_monitor.UNKNOWN:
            why = f"It is not known whether the tool ran: its process said that it could not begin. {head['why_not']}"
            return _error(RunStatus.LOST, why)
        case run_monitor.CANCELLED:
            return _error(RunStatus.CANCELLED, "The call was cancelled while the tool ran.")
        case run_monitor.LOG_FLOOD:
            return _error(
                RunStatus.LOG_FLOOD, f"The tool printed more than {limits.log_flood_bytes} bytes and was stopped."
            )
        case run_monitor.RESULT_TOO_LARGE:
            return _error(RunStatus.RESULT_TOO_LARGE, f"The result has more than {limits.result_bytes} bytes.")
    if not head["started"]:
        return _error(RunStatus.START_FAILED, f"The box could not be closed, so nothing ran. {head['why_not']}")
    return {}


def _silent_end(head: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The process ended without a report: the kernel says how."""
    number = head["exit"].get("signal")
    if number == _SIGKILL and head["out_of_memory"]:
        return _error(RunStatus.OUT_OF_MEMORY, f"The tool needed more than {limits.memory_bytes} bytes of memory.")
    # The kernel counts a limit by its own ticks, which may be ahead of what it reports afterwards.
    spent = head.get("out_of_processor_time") or head["cpu_ms"] >= limits.cpu_s * _NEARLY_MS
    if number == _SIGXCPU or (number == _SIGKILL and spent):
        return _out_of_processor_time(limits)
    if number == _SIGSYS:
        return _error(RunStatus.CAPABILITY_BLOCKED, "The tool made a forbidden kind of system call.") | {
            "blocked": "system"
        }
    how = f"signal {number}" if number else f"exit code {head['exit'].get('code', 'unknown')}"
    return _error(RunStatus.EXITED, f"The tool's process ended without a result ({how}).")


def _out_of_processor_time(limits: Limits) -> dict[str, Any]:
    spent = _error(RunStatus.TIMED_OUT, f"The tool used more than {limits.cpu_s} s of processor time and was stopped.")
    return spent | {"error_code": PROCESSOR}


def _tools_word(said: bytes, head: dict[str, Any], limits: Limits) -> dict[str, Any]:
    loaded = len(protocol.IMPORTED) if said.startswith(protocol.IMPORTED) else 0
    if len(said) == loaded:
        return _silent_end(head, limits)
    try:
        kind, value_size, rest_size = protocol.REPORT.unpack_from(said, loaded)
        value, rest, contents = _split(said[loaded + protocol.REPORT.size :], value_size, rest_size)
        about = parse_strict(rest, max_bytes=protocol.MAX_REPORT_BYTES, max_depth=limits.result_depth + _REPORT_DEPTH)
        fields = _understand(kind, value, about, contents, limits)
    except NotStrictJson as error:
        return _error(RunStatus.BAD_RESULT, f"What the tool returned cannot be used. {error}")
    except (struct.error, KeyError, TypeError, AttributeError, ValueError):
        return _error(RunStatus.BAD_RESULT, "The tool's process wrote something that is not a report.")
    return fields


def _split(data: bytes, value_size: int, rest_size: int) -> tuple[bytes, bytes, bytes]:
    """The value, the rest and what the artifacts hold."""
    if len(data) < value_size + rest_size:
        raise ValueError("cut short")
    return data[:value_size], data[value_size : value_size + rest_size], data[value_size + rest_size :]


def _artifacts(about: Any, contents: bytes) -> tuple[LeftArtifact, ...]:
    """What the tool leaves for its caller; names are those of files, each once."""
    if not _is_short_list(about) or sum(each["size"] for each in about) != len(contents):
        raise ValueError("artifacts")
    found, place = [], 0
    for each in about:
        name, claim, size = each["name"], each["media_type"], each["size"]
        if not (isinstance(name, str) and _is_short_text(claim) and type(size) is int and size >= 0):
            raise ValueError("artifacts")
        if not name or len(name) > MAX_ARTIFACT_NAME or not name.isprintable() or set(name) & {"/", "\\"}:
            raise NotStrictJson("An artifact has a name that no file can have.")
        found.append(LeftArtifact(name, claim, contents[place : place + size]))
        place += size
    if len({each.name for each in found}) != len(found):
        raise NotStrictJson("Two artifacts have one name.")
    return tuple(found)


def _too_much(artifacts: tuple[LeftArtifact, ...], limits: Limits) -> str:
    size = sum(len(each.content) for each in artifacts)
    if len(artifacts) > limits.artifacts:
        return f"The tool left {len(artifacts)} artifacts, {limits.artifacts} are allowed."
    return (
        f"The artifacts have {size} bytes, {limits.artifact_bytes} are allowed." if size > limits.artifact_bytes else ""
    )


def _understand(kind: int, value: bytes, about: dict[str, Any], contents: bytes, limits: Limits) -> dict[str, Any]:
    attempts = about["attempts"]
    if not _is_short_list(attempts) or not all(map(_is_short_text, attempts)):
        raise ValueError("attempts")
    fields: dict[str, Any] = {"report": check_report(about["report"]), "attempts": tuple(attempts)}
    if type(about.get("waited_ms")) is int and 0 <= about["waited_ms"] <= _MAX_WAITED_MS:
        fields["waited_ms"] = about["waited_ms"]
    if kind == protocol.RETURNED:
        if len(value) > limits.result_bytes:
            return fields | _error(RunStatus.RESULT_TOO_LARGE, f"The result has more than {limits.result_bytes} bytes.")
        parsed = parse_strict(value, max_bytes=limits.result_bytes, max_depth=limits.result_depth)
        artifacts = _artifacts(about.get("artifacts", []), contents)
        if why := _too_much(artifacts, limits):
            return fields | _error(RunStatus.RESULT_TOO_LARGE, why) | {"error_code": ARTIFACTS}
        return fields | {
            "status": RunStatus.OK,
            "value": parsed,
            "result_bytes": len(value) + len(contents),
            "artifacts": artifacts,
        }
    if contents:
        raise ValueError("artifacts of a call that did not return")
    error = about["error"]
    message, name = _short(error["message"]), _short(error["type"])
    if kind == protocol.DOMAIN_ERROR and _ERROR_CODE.fullmatch(error["code"]) and isinstance(error["details"], dict):
        details = {"error_code": error["code"], "error_details": error["details"]}
        return fields | _error(RunStatus.DOMAIN_ERROR, message, name) | details
    if kind == protocol.BLOCKED:
        return fields | _error(RunStatus.CAPABILITY_BLOCKED, message, name) | {"blocked": _short(error["blocked"])}
    fields |= _error(_STATUSES.get(kind, RunStatus.RAISED), message, name)
    if kind == protocol.NOT_AS_DECLARED:
        fields |= {"error_code": SCHEMA, "error_details": {"pointers": _pointers(error.get("pointers", []))}}
    return fields


def _pointers(said: Any) -> list[str]:
    if not _is_short_list(said) or not all(map(_is_short_text, said)):
        raise ValueError("pointers")
    return list(said)


_STATUSES = {
    protocol.BAD_RESULT: RunStatus.BAD_RESULT,
    protocol.NOT_AS_DECLARED: RunStatus.BAD_RESULT,
    protocol.NO_MEMORY: RunStatus.OUT_OF_MEMORY,
    protocol.EXITED: RunStatus.EXITED,
    protocol.TOO_LARGE: RunStatus.RESULT_TOO_LARGE,
}


def _short(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:_MAX_ERROR_CHARS]


def _error(status: RunStatus, message: str, name: str = "") -> dict[str, Any]:
    return {"status": status, "error_message": message, "error_type": name}


def _text(log: bytes) -> str:
    """A log as text that can be stored anywhere."""
    return log.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def build_outcome(head: dict[str, Any], parts: list[bytes], limits: Limits, **more: Any) -> RunOutcome:
    return RunOutcome(**read_result(head, parts, limits), **more)
