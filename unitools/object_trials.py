"""Object trials: what an object of others says of itself, when it is made in a process of its own without anybody's secrets.

This module, run as a program, reads what to try as JSON and writes what it saw. The code that is tried is refused the usual ways to
start a program, for one that installs packages would change what is being looked at. That is a help for whoever looks and no wall:
code in the same process can undo it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
import sysconfig
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unitools.brought_objects import FRAMEWORKS, FUNCTION, find_framework, load_object, make_object
from unitools.object_descriptions import NotBrought, read_description, read_env_vars
from unitools.source_scans import SourceScan

if TYPE_CHECKING:
    from collections.abc import Sequence

IMPORT, FIND, MAKE, DESCRIBE = "import", "find", "make", "describe"
MAX_SCANNED_FILES, MAX_SCANNED_BYTES = 200, 1024 * 1024
_RUNS_ON = ("anyio", "pydantic")
_STARTS = (
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.startfile", "pty.spawn",
)  # fmt: skip
_MAX_TEXT = 600


@dataclass(slots=True)
class Trial:
    """What was seen. ``reads``: names of the environment, and where it was when each was read first. ``starts``: programs."""

    stage: str = IMPORT
    reads: dict[str, str] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)


class ProgramRefused(PermissionError):
    """No program is to be started while an object is tried."""


class _WatchedEnvironment(type(os.environ)):  # type: ignore[misc]
    """The environment, which remembers what was asked of it."""

    trial: Trial

    def __getitem__(self, key: str) -> str:
        self.trial.reads.setdefault(str(key), self.trial.stage)
        found: str = super().__getitem__(key)
        return found


def main() -> None:
    asked = json.load(sys.stdin)
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is tried may print
    sys.path[:0] = [each for each in asked["folders"] if each not in sys.path]
    said = (
        try_object(asked["object"], asked["own"], asked["packages"], asked["given"])
        if "object" in asked
        else list_objects(asked["module"])
    )
    json.dump(said, output)
    output.flush()
    os._exit(0)  # threads that were started are not waited for


def try_object(
    reference: str, own: str = "", packages: Sequence[str] = (), given: Sequence[str] = ()
) -> dict[str, Any]:
    """``own``: the folder of the author's own modules; ``packages``: what was installed for it; ``given``: names of the environment
    that are there for it. Says what was seen also where it came to nothing."""
    trial = Trial()
    before = set(os.environ) - set(given)
    _watch(trial)
    said: dict[str, Any] = {}
    found: Any = None
    try:
        importlib.import_module(reference.partition(":")[0])
        trial.stage = FIND
        found = load_object(reference)
        trial.stage = MAKE
        said["env_vars"] = read_env_vars(found)
        said["is_class"] = isinstance(found, type)
        found = make_object(found)
        trial.stage = DESCRIBE
        description = read_description(found)
        said |= {"description": description.to_json(), "digest": description.digest}
    except NotBrought as error:
        said["refused"] = str(error)
    except BaseException as error:  # noqa: BLE001  it is code of others
        said["failed"] = _describe_failure(error)
    said |= {"stage": trial.stage, "starts": trial.starts}
    said["reads"] = {name: stage for name, stage in trial.reads.items() if name not in before}
    with suppress(Exception):
        said |= _look_at_source(reference, found, own)
        said["distributions"] |= dict(_read_versions(set(packages)))
    return said


def _watch(trial: Trial) -> None:
    _WatchedEnvironment.trial = trial
    os.environ.__class__ = _WatchedEnvironment

    def refuse(command: str) -> NoReturn:
        trial.starts.append(command)
        raise ProgramRefused(f"No program is started while this is tried: {command}")

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            refuse(_format_command(event, arguments))

    sys.addaudithook(hear)
    with suppress(ImportError):  # what multiprocessing starts its processes by, of which no hook hears
        posix: Any = importlib.import_module("_posixsubprocess")
        posix.fork_exec = lambda arguments, *_: refuse(_format_command("", (arguments,)))


def _format_command(event: str, arguments: tuple[Any, ...]) -> str:
    if not arguments:
        return event  # a fork
    said = arguments[1] if event == "subprocess.Popen" else arguments[0]
    words = [said] if isinstance(said, (str, bytes, os.PathLike)) else list(said)
    return " ".join(map(os.fsdecode, words))[:200]


def _describe_failure(error: BaseException) -> dict[str, Any]:
    """``missing``: modules that did not come along, also where they were caught on the way. ``attribute``: what the error itself says
    is not there."""
    missing: list[str] = []
    each: BaseException | None = error
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if isinstance(each, ModuleNotFoundError) and each.name:
            missing.append(each.name)
        each = each.__cause__ or each.__context__
    attribute = str(error.name or "") if isinstance(error, AttributeError) else ""
    text = "(it cannot be shown)"
    with suppress(Exception):
        text = " ".join(str(error).split())  # in one line
    return {"type": type(error).__name__, "message": text[:_MAX_TEXT], "missing": missing, "attribute": attribute}


def _look_at_source(reference: str, found: Any, own: str) -> dict[str, Any]:
    """What its source names, and which packages bring it and what the author's own modules import. ``found``: None where it could not
    be imported, and then nothing more of it is."""
    module = reference.partition(":")[0]
    top = module.partition(".")[0]
    scan = SourceScan()
    is_own = _is_below(_origin_of(top), own)
    paths = _list_own(top, own) if is_own else _list_sources(module, found, top)
    scan.is_whole = 0 < len(paths) <= MAX_SCANNED_FILES
    for path in paths[:MAX_SCANNED_FILES]:
        data = path.read_bytes()
        if len(data) <= MAX_SCANNED_BYTES:
            scan.add(data.decode(errors="replace"), _shown(path, own if is_own else ""))
        else:
            scan.is_whole = False
    known = packages_distributions()
    wanted = {top} if not is_own else scan.imports - {top, "."}
    wanted -= set(sys.stdlib_module_names) | {"unitools"}
    names = {each for word in wanted for each in known.get(word, ())[:1]} | set(_RUNS_ON)
    names.add(FRAMEWORKS[find_framework(found)][1])
    brings = known.get(top, ())[:1] if not is_own else ()
    return {
        "is_own": is_own,
        "package": brings[0] if brings else "",
        "distributions": dict(_read_versions(names)),
        "unknown": sorted(each for each in wanted if each not in known),
        "scan": {
            "environment": scan.environment,
            "hosts": scan.hosts,
            "installs": scan.installs,
            # Of the author's own all files were looked at; of a package only those of the object.
            "imports": sorted(scan.imports - {top, "."} if is_own else scan.imports),
            "acts": scan.acts,
            "is_whole": scan.is_whole,
        },
    }


def _read_versions(names: set[str]) -> list[tuple[str, str]]:
    found = []
    for name in sorted(filter(None, names)):
        with suppress(PackageNotFoundError):
            found.append((name, version(name)))
    return found


def _origin_of(top: str) -> str:
    spec = importlib.util.find_spec(top)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return (spec.origin or "") if spec and not places else (places or [""])[0]


def _is_below(path: str, folder: str) -> bool:
    """Whether it is of the author's own folder, and not of packages that happen to lie in it."""
    if not folder or not path:
        return False
    place = Path(path).resolve()
    packages = [Path(sysconfig.get_path(each)).resolve() for each in ("purelib", "platlib")]
    return place.is_relative_to(Path(folder).resolve()) and not any(place.is_relative_to(each) for each in packages)


def _list_own(top: str, own: str) -> list[Path]:
    """All that is shipped of the author's own."""
    folder = Path(own, top)
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [Path(own, f"{top}.py")]


def _list_sources(module: str, found: Any, top: str) -> list[Path]:
    """The files of the module, of the classes of the object and of what it holds, as far as they are of the same package."""
    kind = found if isinstance(found, type) else type(found)
    kinds = [*kind.__mro__, *(type(each) for each in getattr(found, "__dict__", {}).values())]  # clients that it holds
    modules = [module, *(each.__module__ for each in kinds)]
    function = getattr(found, "func", None) or getattr(found, "coroutine", None)
    if inspect.isfunction(function):
        modules.append(function.__module__)
    files: dict[str, None] = {}
    for name in modules:
        place = getattr(sys.modules.get(name), "__file__", None)
        if name.partition(".")[0] == top and isinstance(place, str) and place.endswith(".py"):
            files[place] = None
    return [Path(each) for each in files]


def _shown(path: Path, own: str) -> str:
    """Without what stands above it on this machine."""
    return path.relative_to(own).as_posix() if own else "/".join(path.parts[-2:])


def list_objects(module: str) -> dict[str, Any]:
    """Tools of the frameworks and functions that a module itself defines: name, framework, first line of what it says."""
    _watch(Trial())
    try:
        found = importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001  it is code of others
        return {"failed": _describe_failure(error)}
    listed = []
    for name, each in sorted(vars(found).items()):
        framework = find_framework(each)
        is_here = getattr(each, "__module__", module) == module
        if name.startswith("_") or (inspect.isclass(each) and (framework == FUNCTION or not is_here)):
            continue
        if framework == FUNCTION and not (inspect.isfunction(each) and is_here):
            continue
        said = inspect.getdoc(each) if framework == FUNCTION else _read_text(each)
        listed.append([name, framework, (said or "").strip().partition("\n")[0]])
    return {"listed": listed}


def _read_text(tool: Any) -> str:
    """What a tool, or its class, says of itself."""
    fields: Any = getattr(tool, "model_fields", {}) if isinstance(tool, type) else {}
    said = fields["description"].default if fields else tool.description
    return said if isinstance(said, str) else ""


if __name__ == "__main__":
    main()
