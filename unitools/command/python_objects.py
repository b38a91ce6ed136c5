"""Command ``unitools bring python MODULE:OBJECT``: source files and manifests of tools that are written in Python.

An object has to be made to be described. A module of the author's own, in this folder, is imported as by any command; a package of
others only where the author says so. Each is tried in a process of its own that has no secrets and is not to start a program.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_objects import MADE_FILE, SOURCE_FOLDER
from unitools.brought_tools import CannotBring
from unitools.command.object_choices import add_arguments as add_choices
from unitools.command.object_choices import ask_choices, merge_choices, read_options, write_kept
from unitools.command.object_record import CONSTRAINT, PACKAGE, REFERENCE, read_record
from unitools.command.object_trials import ObjectTrial, find_own, list_module, try_reference
from unitools.command.pack import read_file_bytes, write_file
from unitools.command.terminal import GOOD, NO, CannotRun, format_shown, print_changes, print_lines
from unitools.command.wheels import install_wheels
from unitools.dependency_locks import normalize_name
from unitools.object_drafts import (
    BroughtObject,
    ObjectChoices,
    derive_object_group,
    derive_object_id,
    draft_objects,
)
from unitools.packages import PackageError, compute_files_digest, read_package_files
from unitools.publications import check_group, derive_package_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from unitools.command.object_record import ObjectRecord
    from unitools.object_drafts import ObjectDraft

_WARNING = """\
This runs code of {what} on this machine, with your rights and with your network: code that nobody here has reviewed. A hub runs it in
a sandbox. To run it here all the same, say --run-here; or run the whole command in a container.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "object", nargs="+", metavar="MODULE:OBJECT", help="again for more; MODULE alone lists its tools"
    )
    command.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="NAME[==VERSION]",
        help="installed to look at, and a dependency",
    )
    command.add_argument("--constraint", action="append", default=[], metavar="NAME<2", help="for what comes along")
    command.add_argument(
        "--run-here", action="store_true", help="run code of packages on this machine, to see what it says"
    )
    add_choices(command)
    command.add_argument("--group", default="", metavar="group.package", help="what the tools stand under in a hub")
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="instead of one named after the group")


def run(options: argparse.Namespace) -> int:
    asked = [REFERENCE.fullmatch(each) for each in options.object]
    if None in asked or any(not PACKAGE.fullmatch(each) for each in options.package):
        raise CannotRun("Objects are named MODULE:OBJECT, packages NAME or NAME==VERSION.")
    if wrong := [each for each in options.constraint if not CONSTRAINT.fullmatch(each)]:
        raise CannotRun(f"--constraint is NAME<2 or the like, not {wrong[0][:60]!r}.")
    modules = [each[1] for each in asked if each is not None]
    given = [each[0] for each in asked if each is not None and each[2]]
    bare = [each[1] for each in asked if each is not None and not each[2]]
    try:
        group = check_group(options.group or derive_object_group(modules[0]))
        folder: Path = options.output or Path(derive_package_name(group))
        if folder.name != derive_package_name(group):
            raise CannotRun(
                f"The folder of the group {group} is called {derive_package_name(group)}; choose another --output."
            )
        return _bring(options, modules, bare, given, group, folder)
    except CannotBring as error:
        sys.stderr.write(f"{format_shown(str(error), 1000)}\n")
        return NO
    except (ValueError, PackageError) as error:
        raise CannotRun(str(error)) from error


def _bring(
    options: argparse.Namespace, modules: list[str], bare: list[str], given: list[str], group: str, folder: Path
) -> int:
    before = read_record(folder)
    if not (before.is_brought or bare) and (foreign := sorted(folder.glob("*.py"))):
        raise CannotRun(
            f"{folder} holds Python files that were not brought ({foreign[0].name}): it has no {MADE_FILE}. Choose another --group "
            "or --output, or put that file back."
        )
    packages = options.package or before.packages
    constraints = options.constraint or before.constraints
    own = Path.cwd()
    lost = [each for each in _list_lost(before, own) if each not in given]
    names = [each for each in dict.fromkeys([*before.references, *given]) if each not in lost]
    said = replace(read_options(options), constraints=tuple(constraints))
    nothing = ObjectChoices(constraints=tuple(constraints))
    choices = {
        each: merge_choices(before.choices.get(each, ObjectChoices()), said if each in given else nothing)
        for each in names
    }
    _check_may_run(options, packages, [*modules, *(each.partition(":")[0] for each in names)], own)
    with tempfile.TemporaryDirectory(prefix="unitools-bring-") as place:
        folders = [own]
        if packages:
            folders.append(Path(place, "site"))
            install_wheels(packages, constraints, folders[1])
        if bare:
            return _offer(bare[0], folders)
        trials = {each: try_reference(each, folders, packages, choices[each]) for each in names}
    gone = [*lost, *(each for each in names if trials[each].is_gone and each not in given)]
    kept = {name: trial for name, trial in trials.items() if name not in gone}
    for trial in kept.values():
        trial.check_made()
    choices = ask_choices(choices, [kept[each] for each in kept if each in given], take=options.guess)
    objects = [_to_object(trial, choices[name], own) for name, trial in kept.items()]
    dependencies = _list_dependencies(kept.values(), packages)
    ids = [derive_object_id(group, each) for each in objects]  # a file may be there also where its manifest is not
    sources = {id: text for id in ids if (text := _read_source(folder, id)) is not None}
    drafts = draft_objects(objects, group, choices, dependencies, before.manifests, sources, before.objects)
    left = {each: before.objects[each] for each in gone if each in before.objects}  # until it is there again
    made = {
        "packages": packages,
        "constraints": constraints,
        "objects": left | _list_made(drafts, kept, choices),
    }
    _write(folder, drafts, made, kept, own)
    _report(folder, drafts, kept, choices, gone)
    renamed = _tell_renamed(before, drafts)
    return NO if gone or renamed else GOOD


def _offer(module: str, folders: list[Path]) -> int:
    listed = list_module(module, folders)
    print_lines(f"{module} has {len(listed)} tools and functions; choose with {module}:NAME, again for more:")
    for name, framework, text in listed:
        print_lines(f"  {framework:9}  {format_shown(name)}  {format_shown(text)}")
    return GOOD


def _check_may_run(options: argparse.Namespace, packages: Sequence[str], modules: Iterable[str], own: Path) -> None:
    """A module of this folder is the author's; whatever else is named is code of others."""
    others = [each for each in modules if find_own(each, own) is None]
    if options.run_here or not (packages or others):
        return
    raise CannotRun(_WARNING.format(what=", ".join(dict.fromkeys([*packages, *others]))))


def _list_lost(before: ObjectRecord, own: Path) -> list[str]:
    """Objects of modules that the author has no more in this folder."""
    return [
        reference
        for reference, manifest in zip(before.references, before.manifests, strict=True)
        if "source_digest" in manifest["origin"]["object"] and find_own(reference.partition(":")[0], own) is None
    ]


def _read_own(module: str, own: Path) -> list[tuple[str, bytes]]:
    """The author's own module as it travels: a package whole, any other file alone."""
    place = find_own(module, own)
    if place is None:
        return []
    return read_package_files(place) if place.is_dir() else [(place.name, read_file_bytes(place))]


def _to_object(trial: ObjectTrial, said: ObjectChoices, own: Path) -> BroughtObject:
    description = trial.description
    origin = {"package": trial.package, "version": trial.distributions.get(trial.package, "")}
    if trial.is_own:
        origin = {"source_digest": compute_files_digest(_read_own(trial.module, own))}
    elif not trial.package:
        raise CannotBring(
            f"No package brings {trial.reference}: name it with --package, or bring a module of your own."
        )
    needs = tuple(each for each in trial.needs if each not in said.environment)
    reads = {*needs, *said.secrets, *said.environment, *(each["name"] for each in description["env_vars"])}
    is_ahead = not trial.is_own and trial.imported_alone and not (trial.read_at_import & reads)
    return BroughtObject(trial.reference, description, trial.digest, trial.is_class, origin, is_ahead, needs)


def _list_dependencies(trials: Iterable[ObjectTrial], packages: Sequence[str]) -> list[str]:
    """Exact versions: of what was asked for with its extras, of what brings the objects, and of what they import."""
    found: dict[str, str] = {}
    names = [each.partition("==")[0] for each in packages]
    asked = {normalize_name(each.partition("[")[0]): each for each in names}
    for trial in trials:
        for name, version in trial.distributions.items():
            found[normalize_name(name)] = f"{asked.get(normalize_name(name), name)}=={version}"
    return sorted(found.values(), key=str.lower)


def _read_source(folder: Path, id: str) -> str | None:
    path = _place_of(folder, id)
    return read_file_bytes(path).decode(errors="replace") if path.is_file() else None


def _place_of(folder: Path, id: str) -> Path:
    return folder / f"{id.rpartition('.')[2]}.py"


def _list_made(
    drafts: list[ObjectDraft], trials: dict[str, ObjectTrial], choices: Mapping[str, ObjectChoices]
) -> dict[str, Any]:
    """What the next run compares with, and what a reviewer holds the manifests against, by references."""
    return {
        name: {
            "choices": write_kept(choices[name]),
            "made": draft.made,
            "source": draft.made_source,
            "pinned": trials[name].pinned,
        }
        for draft in drafts
        for name in (draft.made["origin"]["object"]["name"],)
    }


def _write(
    folder: Path, drafts: list[ObjectDraft], made: dict[str, Any], trials: dict[str, ObjectTrial], own: Path
) -> None:
    files: dict[str, bytes] = {} if (folder / "__init__.py").exists() else {"__init__.py": b""}
    for trial in trials.values():
        files |= (
            {f"{SOURCE_FOLDER}/{path}": data for path, data in _read_own(trial.module, own)} if trial.is_own else {}
        )
    files[MADE_FILE] = _json(made)
    for draft in drafts:
        files[f"manifests/{draft.document['id']}.json"] = _json(draft.document)
        files[_place_of(Path(), draft.document["id"]).as_posix()] = draft.source.encode()
    _remove_stale(folder, [each.module for each in trials.values() if each.is_own], files)
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"{path.parent} cannot be made: {error.strerror}.") from error
        write_file(path, data)


def _remove_stale(folder: Path, modules: Iterable[str], files: Mapping[str, bytes]) -> None:
    """What the author's modules had when they were brought before, and have no more: it would travel along."""
    for top in {each.partition(".")[0] for each in modules}:
        place = folder / SOURCE_FOLDER
        for path in [place / f"{top}.py", *(place / top).rglob("*.py")]:
            if path.is_file() and path.relative_to(folder).as_posix() not in files:
                path.unlink()


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def _report(
    folder: Path,
    drafts: list[ObjectDraft],
    trials: dict[str, ObjectTrial],
    choices: Mapping[str, ObjectChoices],
    gone: list[str],
) -> None:
    travel = {each.module.partition(".")[0] for each in trials.values() if each.is_own}
    for draft in drafts:
        document = draft.document
        trial = trials[document["origin"]["object"]["name"]]
        print_lines(f"{document['id']} {document['version']}  {document['side_effect']}, from {trial.reference}")
        print_changes(draft.changes)
        for note in trial.description["notes"]:
            print_lines(f"  {format_shown(note, 300)}")
        for command in trial.seen["starts"]:
            print_lines(f"  It wanted to start a program, and was made without: {format_shown(command)}")
        for name in trial.needs:
            print_lines(f"  It cannot be made without {format_shown(name)}, which is one of its secrets.")
        for name in (each for each in trial.left_behind if each not in travel):
            print_lines(
                f"  It imports {format_shown(name)}, which no package brings and which does not travel: make one package of both."
            )
        if draft.source_difference:
            print_lines(f"  Your {_place_of(folder, document['id'])} is left as it is. What is made otherwise:")
            print_lines(*(f"    {format_shown(line, 200)}" for line in draft.source_difference.splitlines()))
    _tell_guesses(trials.values(), choices)
    for name in gone:
        sys.stderr.write(f"There is no {format_shown(name)} any more; its manifest is left as it is.\n")
    print_lines(f"Read and correct them (build, effect, hosts, limits), then: unitools pack {folder}")


def _tell_renamed(before: ObjectRecord, drafts: list[ObjectDraft]) -> bool:
    """Whether a manifest is left of a tool that has another name now. Both would be packed."""
    ids = {draft.made["origin"]["object"]["name"]: draft.document["id"] for draft in drafts}
    left = [
        (manifest["id"], reference)
        for reference, manifest in zip(before.references, before.manifests, strict=True)
        if reference in ids and manifest["id"] != ids[reference]
    ]
    for id, reference in left:
        sys.stderr.write(
            f"{format_shown(reference)} is called otherwise now, and has become {ids[reference]}. The manifest of {format_shown(id)} "
            "is left as it is: remove it with its source file, unless callers still need it.\n"
        )
    return bool(left)


def _tell_guesses(trials: Iterable[ObjectTrial], choices: Mapping[str, ObjectChoices]) -> None:
    """What the source names and nobody has said: a guess for a person, each once."""
    lines: dict[str, None] = {}
    for trial in trials:
        said = choices[trial.reference]
        for name, place in trial.find_secrets([*said.secrets, *said.environment]).items():
            lines[
                f"{format_shown(name)} is read at {format_shown(place)}, and not given: --secret {format_shown(name)}"
            ] = None
        for host, place in trial.scan.hosts.items():
            if host not in said.hosts:
                shown = format_shown(host)
                lines[f"{shown} is named at {format_shown(place)}, and not reached: --host {shown}"] = None
        for command, place in trial.scan.installs.items():
            shown = format_shown(command)
            lines[f"{format_shown(place)} installs packages ({shown}), which no sandbox lets it do."] = None
    if lines:
        print_lines(*lines)
