"""Object trials: how the command tries an object, and what it concludes from what was seen.

The process that tries is started anew until it has all that it asks its environment for: first without any secret, then with values
that are none.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_objects import PINNED
from unitools.brought_tools import CannotBring
from unitools.command.terminal import CannotRun, format_shown
from unitools.command.trial_answers import check_answer, check_failure, check_listing
from unitools.source_scans import SourceScan, guess_effect, is_secret_name
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from unitools.object_drafts import ObjectChoices

TRY_WITHIN_S = 120
MAX_OUTPUT_BYTES = 64 * 1024 * 1024  # and of any file that it writes
PLACEHOLDER = "not-a-secret"
_MAX_TRIES = 5
_TAIL_BYTES = 2048
# The interpreter starts without the folders of others, so that none of their files (a sitecustomize, a unitools) stands in for ours.
_START = """\
import importlib.util, resource, runpy, sys
most, ours, *others = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
sys.argv[1:] = []
sys.path[:0] = [*others, ours]
spec = importlib.util.spec_from_file_location("unitools", f"{ours}/unitools/__init__.py")
sys.modules["unitools"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["unitools"])
runpy.run_module("unitools.object_trials", run_name="__main__")
"""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")  # of the environment, as a source file may hold it


@dataclass(slots=True)
class ObjectTrial:
    """What the last process saw of one object. ``is_here``: whether the author's folder has its module; ``needs``: what it could not
    be made without; ``imported_alone``: whether its module was imported without any of that."""

    reference: str
    seen: dict[str, Any]
    is_here: bool = False
    needs: list[str] = field(default_factory=list)
    imported_alone: bool = False
    read_at_import: set[str] = field(default_factory=set)

    @property
    def description(self) -> dict[str, Any]:
        found: dict[str, Any] = self.seen["description"]
        return found

    @property
    def digest(self) -> str:
        return str(self.seen["digest"])

    @property
    def module(self) -> str:
        return self.reference.partition(":")[0]

    @property
    def pinned(self) -> dict[str, Any]:
        """What its digest is made of."""
        return {name: self.description[name] for name in PINNED}

    @property
    def is_class(self) -> bool:
        return bool(self.seen["is_class"])

    @property
    def is_own(self) -> bool:
        return self.is_here and self.seen.get("is_own") is True

    @property
    def package(self) -> str:
        return str(self.seen["package"])

    @property
    def distributions(self) -> dict[str, str]:
        found: dict[str, str] = self.seen["distributions"]
        return found

    @property
    def left_behind(self) -> list[str]:
        """What the author's own modules import and nobody brings."""
        found: list[str] = self.seen["unknown"] if self.is_own else []
        return found

    @property
    def scan(self) -> SourceScan:
        said = self.seen.get("scan", {"is_whole": False})
        return SourceScan(**said | {"imports": set(said.get("imports", ()))})

    @property
    def guessed_effect(self) -> str:
        return guess_effect(self.scan)

    @property
    def is_gone(self) -> bool:
        """Whether there is no object of this name any more. A package that is not here at all says nothing of its objects."""
        failed = self.seen.get("failed", {})
        match self.seen["stage"]:
            case "find":
                return failed.get("attribute") in self.reference.partition(":")[2].split(".")
            case "import" if failed.get("type") == ModuleNotFoundError.__name__ and failed["missing"]:
                return "." in failed["missing"][0] and f"{self.module}.".startswith(f"{failed['missing'][0]}.")
        return False

    def find_secrets(self, said: Iterable[str]) -> dict[str, str]:
        """What its source reads from the environment and looks like a secret, beside what is said already."""
        known = {*said, *self.needs, *(each["name"] for each in self.description["env_vars"])}
        return {
            name: place for name, place in self.scan.environment.items() if is_secret_name(name) and name not in known
        }

    def check_made(self) -> None:
        """Raises :class:`CannotBring` with what a person can do."""
        if "refused" in self.seen:
            raise CannotBring(f"{self.reference}: {self.seen['refused']}")
        if "failed" not in self.seen:
            return
        failed, starts = self.seen["failed"], self.seen["starts"]
        said = f"{self.reference} cannot be {'made' if self.seen['stage'] in ('make', 'describe') else 'imported'}"
        missing = ", ".join(dict.fromkeys(failed["missing"]))
        if starts and self.seen["stage"] != "describe":
            what = "A hub locks all packages before the review, and a call installs none and starts no program."
            name = f" ({missing})" if missing else ""
            raise CannotBring(
                f"{said} without starting a program: {starts[0]}. {what} Name the package that it needs{name} with "
                "--package, so that it is locked with the others; a program that is no installer has to be in the image."
            )
        if missing:
            raise CannotBring(
                f"{said}: the module {missing} did not come along. Name the package that has it with --package."
            )
        raise CannotBring(
            f"{said}: {failed['type']}: {failed['message']}. What it reads from its environment is given with --secret NAME or "
            "--environment NAME=VALUE; what it is made with stands best in a module of your own: bring one of that."
        )


def try_reference(reference: str, folders: Sequence[Path], packages: Sequence[str], said: ObjectChoices) -> ObjectTrial:
    """``folders``: where modules are looked for first; the author's own first. ``said``: what is known of its environment."""
    given: dict[str, str] = dict(said.environment)
    names = [re.split(r"[\[=]", each, maxsplit=1)[0] for each in packages]
    asked = {"object": reference, "own": str(folders[0]), "packages": names, "given": list(given)}
    module = reference.partition(":")[0]
    trial = ObjectTrial(reference, _try(asked, folders, given), find_own(module, folders[0]) is not None)
    trial.imported_alone = trial.seen["stage"] != "import"
    trial.read_at_import = {name for name, stage in trial.seen["reads"].items() if stage == "import"}
    for _ in range(_MAX_TRIES):
        if "failed" not in trial.seen or trial.seen["starts"]:
            break
        declared = [*said.secrets, *(each["name"] for each in trial.seen.get("env_vars", ()))]
        named = trial.scan.environment
        new = [
            each
            for each in trial.seen["reads"]
            if NAME.fullmatch(each)
            and each not in given
            and (each in declared or each in named or is_secret_name(each))
        ]
        if not new:
            break
        given |= dict.fromkeys(new, PLACEHOLDER)
        trial.needs += new
        trial.seen = _try(asked, folders, given)
    return trial


def find_own(module: str, own: Path) -> Path | None:
    """The author's own module: a package's folder or a file; None: it is code of others."""
    top = own / module.partition(".")[0]
    if top.is_dir() and (top / "__init__.py").is_file():
        return top
    return top.with_suffix(".py") if top.with_suffix(".py").is_file() else None


def _try(asked: dict[str, Any], folders: Sequence[Path], environment: dict[str, str]) -> dict[str, Any]:
    return check_answer(_run(asked, folders, environment), folders, sys.path)


def list_module(module: str, folders: Sequence[Path]) -> list[list[str]]:
    found = _run({"module": module}, folders, {})
    if isinstance(found, dict) and "failed" in found:
        failed = check_failure(found)
        raise CannotRun(
            f"{module} cannot be imported: {format_shown(failed['type'])}: {format_shown(failed['message'], 600)}"
        )
    return check_listing(found)


def _run(asked: dict[str, Any], folders: Sequence[Path], environment: dict[str, str]) -> Any:
    """What the process says that tries it. It has nothing of this one's environment."""
    with tempfile.TemporaryDirectory(prefix="unitools-trial-") as home:
        values = {"PATH": os.defpath, "HOME": home, "TZ": "UTC", **environment}
        with Path(home, ".answer").open("w+b") as answer, Path(home, ".output").open("w+b") as output:
            ours, others = str(Path(__file__).parents[2]), map(str, folders[1:])
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(MAX_OUTPUT_BYTES), ours, *others],
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=output,
                env=values,
                cwd=home,
                start_new_session=True,
            )
            try:
                process.communicate(
                    json.dumps(asked | {"folders": [str(each) for each in folders]}).encode(), TRY_WITHIN_S
                )
            except subprocess.TimeoutExpired:
                raise CannotRun(f"It was not imported and made within {TRY_WITHIN_S} seconds.") from None
            finally:
                _end(process)
            answer.seek(0)
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
            said, told = answer.read(), output.read()
    try:
        return STRICT.read(said)
    except JsonRefused:
        tail = [format_shown(line) for line in told.decode(errors="replace").splitlines()]
        raise CannotRun(
            "\n".join(["The process that tried it ended before it could say what it saw.", *tail])
        ) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started, if it is still there."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
