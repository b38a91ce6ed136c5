"""Packages: what exactly is shipped of a tool.

A tool's package is one folder of plain files below a tools root. It is shipped as a zip and named by a digest over
its files, so the version that was reviewed can be told from anything else.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.entries import entry_problem
from unitools.mcp_listings import LISTING_FILE, Listing, ListingUnfit, compute_json_digest, read_entry_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from unitools.manifest import Manifest

MAX_PACKAGE_BYTES = 16 * 1024 * 1024
MAX_PACKAGE_FILES = 2000
_OURS = {"unitools", "sandbox"}  # what is in the box already
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


class PackageError(Exception):
    """A tool's package cannot be shipped.

    ::

        PackageError
         ├── PackageNotFound
         ├── ModuleNotFound
         ├── EntryUnfit
         ├── ProgramNotFound
         ├── ListingNotFit
         ├── PackageNameTaken
         ├── PackageTooLarge
         └── PackageNotPlain
    """


class PackageNotFound(PackageError):
    """No tools root holds the package."""


class ModuleNotFound(PackageError):
    """The package does not hold the module."""


class EntryUnfit(PackageError):
    """The module does not have the function that the manifest names, or it cannot be called as the schema says."""


class ProgramNotFound(PackageError):
    """The package does not hold what the program is to run."""


class ListingNotFit(PackageError):
    """The package does not hold what the server of others was pinned by."""


class PackageNameTaken(PackageError):
    """The package has the name of something that is in the box already."""


class PackageTooLarge(PackageError):
    """The package has too many bytes or files."""


class PackageNotPlain(PackageError):
    """The package holds something that is neither a file nor a folder."""


def find_shipped(manifest: Manifest, roots: Sequence[Path]) -> Path:
    """The folder that goes into the box for a tool, whatever answers its calls."""
    if manifest.listing:
        return _find_folder(manifest.package, roots)
    if manifest.program:
        return find_program(manifest.package, manifest.program, roots)
    return find_package(manifest.module, roots)


def find_package(module: str, roots: Sequence[Path]) -> Path:
    """The folder of a module's package: the first root that has it wins, and it must hold the module."""
    folder = _find_folder(module.partition(".")[0], roots, f" for the module {module!r}")
    _check_holds(folder, module)
    return folder


def find_program(name: str, program: Sequence[str], roots: Sequence[Path]) -> Path:
    """The folder of a program's package, in which it is started: one of its arguments must name a file there."""
    folder = _find_folder(name, roots)
    if not any(_is_inside(folder, argument) for argument in program[1:]):
        raise _program_not_found(name, program)
    return folder


def _program_not_found(name: str, program: Sequence[str]) -> ProgramNotFound:
    return ProgramNotFound(f"No argument of {program[0]} names a file of the package {name!r}.")


def _is_inside(folder: Path, argument: str) -> bool:
    parts = argument.split("/")
    return not {"", ".", ".."}.intersection(parts) and folder.joinpath(*parts).is_file()


def check_package_name(name: str) -> None:
    if not name.isidentifier():
        raise PackageNotFound(f"{name!r} is not the name of a package.")
    if name in _OURS or name in sys.stdlib_module_names:
        raise PackageNameTaken(f"A tool's package cannot be called {name!r}: that module is in the sandbox already.")


def check_holds(manifest: Manifest, names: Collection[str]) -> None:
    """Do files of these names, which begin with the package's own, hold what the manifest names?"""
    if not manifest.has_package:
        return
    if manifest.listing:
        if f"{manifest.package}/{LISTING_FILE}" not in names:
            raise ListingNotFit(f"The package {manifest.package!r} has no {LISTING_FILE}.")
        return
    if manifest.program:
        if not any(f"{manifest.package}/{argument}" in names for argument in manifest.program[1:]):
            raise _program_not_found(manifest.package, manifest.program)
        return
    target = manifest.module.replace(".", "/")
    if f"{target}.py" not in names and f"{target}/__init__.py" not in names:
        raise _module_not_found(manifest.package, manifest.module)


def check_code(manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Everything that is asked of the files of a package without running them."""
    check_holds(manifest, files)
    check_entry(manifest, files)


def check_entry(manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Is the function there that answers the calls, and does it fit the schema of the arguments?"""
    if not manifest.has_package:
        return
    if manifest.listing:
        _check_listing(manifest, files.get(f"{manifest.package}/{LISTING_FILE}"))
        return
    if manifest.program:
        return
    target = manifest.module.replace(".", "/")
    places = (f"{target}/__init__.py", f"{target}.py")  # the first one is what Python imports
    if problem := entry_problem(next(files[place] for place in places if place in files), manifest):
        raise EntryUnfit(problem)


def _check_listing(manifest: Manifest, data: bytes | None) -> None:
    """Is the listing that is shipped the one whose digests the manifest names?"""
    if data is None:
        raise ListingNotFit(f"The package {manifest.package!r} has no {LISTING_FILE}.")
    try:
        listing = Listing.from_bytes(data)
    except ListingUnfit as error:
        raise ListingNotFit(str(error)) from error
    name, said = manifest.origin.get("tool", ""), manifest.origin
    if name not in listing.tools:
        raise ListingNotFit(f"{LISTING_FILE} has no tool {name!r}.")
    found = {
        "entry_digest": listing.entry_digest(name),
        "listing_digest": listing.digest,
        "protocol": listing.protocol,
        "result": "structured" if isinstance(listing.tools[name].get("outputSchema"), dict) else "content",
    }
    if wrong := [each for each, value in found.items() if said.get(each) != value]:
        raise ListingNotFit(f"{LISTING_FILE} is not what origin names: {', '.join(wrong)} differ.")
    structured = read_entry_schema(listing.tools[name], "outputSchema")
    if structured is not None and compute_json_digest(structured) != compute_json_digest(manifest.output_schema):
        raise ListingNotFit(
            "output_schema is not the outputSchema of the server's entry, which its results have to match."
        )


def _find_folder(name: str, roots: Sequence[Path], whose: str = "") -> Path:
    check_package_name(name)
    for root in roots:
        folder = Path(root) / name
        if folder.is_symlink():
            raise PackageNotPlain(f"{folder} is a symbolic link; a package is a real folder.")
        if folder.is_dir():
            return folder
    places = ", ".join(str(root) for root in roots) or "no folder at all"
    raise PackageNotFound(f"No package {name!r}{whose}. Looked in: {places}.")


def _check_holds(package: Path, module: str) -> None:
    target = package.joinpath(*module.split(".")[1:])
    if not target.with_name(f"{target.name}.py").is_file() and not (target / "__init__.py").is_file():
        raise _module_not_found(package.name, module)


def _module_not_found(name: str, module: str) -> ModuleNotFound:
    return ModuleNotFound(f"The package {name!r} has no module {module!r}.")


def read_package_files(package: Path) -> list[tuple[str, bytes]]:
    """The package's files by their sorted names, each beginning with the package's own name."""
    found: list[tuple[str, bytes]] = []
    total = 0
    waiting = [package]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            name = path.relative_to(package.parent).as_posix()
            if path.is_symlink():
                raise PackageNotPlain(f"{name} is a symbolic link; a package holds its files itself.")
            if path.is_dir():
                if path.name != "__pycache__":
                    waiting.append(path)
                continue
            if path.suffix == ".pyc":
                continue
            if not path.is_file():
                raise PackageNotPlain(f"{name} is neither a file nor a folder.")
            total += path.stat().st_size
            if total > MAX_PACKAGE_BYTES or len(found) >= MAX_PACKAGE_FILES:
                raise PackageTooLarge(
                    f"The package {package.name!r} has over {MAX_PACKAGE_BYTES} bytes or {MAX_PACKAGE_FILES} files."
                )
            found.append((name, path.read_bytes()))
    return sorted(found)


def build_zip(package: Path) -> bytes:
    """A zip of the package; the same files give the same bytes."""
    return zip_files(read_package_files(package))


def build_empty_zip() -> bytes:
    """What is shipped of a tool that has no package: an operation of a service answers its calls."""
    return zip_files(())


def zip_files(files: Iterable[tuple[str, bytes]]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content)
    return memory.getvalue()


def compute_zip_digest(archive: bytes) -> str:
    """``sha256:…`` over the names and contents of what :func:`build_zip` made, whatever wrote the zip around them."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return compute_files_digest((name, opened.read(name)) for name in opened.namelist())


def compute_files_digest(files: Iterable[tuple[str, bytes]]) -> str:
    """``sha256:…`` over names and contents, in this order."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def compute_package_digest(package: Path) -> str:
    """The digest of a package as it lies on disk now."""
    return compute_zip_digest(build_zip(package))
