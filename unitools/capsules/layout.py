"""Layout: what is in a capsule, and where.

::

    capsule.json             {"format": "unitools.capsule/1", "package": "<package>"}
    manifests/<tool id>.json one for each tool
    package/<package>/…      the source, as it goes into the sandbox
    lock.txt                 the packages of others, with hashes: what stands as `dependency_lock` in the manifests
    README.md

The digest of a capsule is the SHA-256 of its bytes, and names the build of every tool version that comes from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unitools.capsules import archive
from unitools.capsules.errors import CompiledCode, TooLarge, WrongLayout, WrongManifest
from unitools.manifest import Manifest
from unitools.packages import PackageError, check_holds, check_package_name, read_package_files
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "unitools.capsule/1"
ABOUT, README, LOCK, MANIFESTS, PACKAGE = "capsule.json", "README.md", "lock.txt", "manifests/", "package/"
MAX_MANIFESTS = 64
MAX_MANIFEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Capsule:
    """``data``: the bytes of the file. ``digest``: ``sha256:…`` of them. ``files``: the source by names as in the package's folder."""

    data: bytes
    digest: str
    package: str
    manifests: tuple[dict[str, Any], ...]
    files: Mapping[str, bytes]
    lock: tuple[str, ...] = ()
    readme: str = ""

    @property
    def tools(self) -> list[dict[str, str]]:
        """``{id, version}`` of each, sorted."""
        said = [{"id": str(each["id"]), "version": str(each["version"])} for each in self.manifests]
        return sorted(said, key=lambda each: each["id"])


def compute_capsule_digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def pack_capsule(
    manifests: Sequence[Mapping[str, Any]],
    package: Path | Mapping[str, bytes],
    *,
    lock: Sequence[str] = (),
    readme: str = "",
) -> Capsule:
    """One capsule of manifests and the code that they name. The same input gives the same bytes.

    ``package``: its folder, or its files by names that begin with the package's own. ``lock``: lines of `unitools lock`, put into
    each manifest that has dependencies and no lock of its own; without it, the lock that stands in the manifests is taken.
    """
    source = dict(package) if isinstance(package, Mapping) else _files_of(package)
    names = {name.partition("/")[0] for name in source}
    if len(names) != 1:
        raise WrongLayout(f"A capsule holds one package; these files are of {len(names)}.")
    documents = [_with_lock(each, lock) for each in manifests]
    locks = {tuple(map(str, each["dependency_lock"])) for each in documents if each.get("dependency_lock")}
    if len(locks) > 1:
        raise WrongManifest("The manifests have different locks; pack tools that need other packages one by one.")
    files = {
        ABOUT: _json({"format": FORMAT, "package": names.pop()}),
        **{f"{MANIFESTS}{each.get('id')}.json": _json(each) for each in documents},
        **{f"{PACKAGE}{name}": content for name, content in source.items()},
    }
    if len(files) != 1 + len(documents) + len(source):
        raise WrongManifest("Two manifests have the same id.")
    if locks:
        files[LOCK] = "".join(f"{line}\n" for line in locks.pop()).encode()
    if readme:
        files[README] = readme.encode()
    return open_capsule(archive.write_archive(files))


def open_capsule(data: bytes) -> Capsule:
    """A capsule from the bytes of its file. Raises a :class:`CapsuleError` for anything that :func:`pack_capsule` does not make."""
    files = archive.read_archive(data)
    package = _package_of(files)
    source, manifests = {}, {}
    for name, content in files.items():
        if name.startswith(f"{PACKAGE}{package}/"):
            source[name.removeprefix(PACKAGE)] = content
        elif name.startswith(MANIFESTS):
            manifests[name] = _document(name, content)
        elif name not in (ABOUT, README, LOCK):
            raise WrongLayout(f"A capsule has no place for {name!r}.")
    for name in source:
        if name.endswith((".pyc", ".pyo")) or "__pycache__" in name.split("/"):
            raise CompiledCode(f"{name!r} is compiled code, which nobody can review. Leave it out.")
    if not 0 < len(manifests) <= MAX_MANIFESTS:
        raise WrongLayout(f"A capsule has 1 to {MAX_MANIFESTS} manifests; this one has {len(manifests)}.")
    lock = tuple(_text(LOCK, files[LOCK]).splitlines()) if LOCK in files else ()
    _check_lock(manifests, lock)
    _check_code(manifests, package, source)
    readme = _text(README, files[README]) if README in files else ""
    return Capsule(data, compute_capsule_digest(data), package, tuple(manifests.values()), source, lock, readme)


def _files_of(folder: Path) -> dict[str, bytes]:
    try:
        return dict(read_package_files(folder))
    except PackageError as error:
        raise WrongLayout(str(error)) from error
    except OSError as error:
        raise WrongLayout(f"{folder} cannot be read: {error.strerror}.") from error


def _with_lock(manifest: Mapping[str, Any], lock: Sequence[str]) -> dict[str, Any]:
    document = dict(manifest)
    if lock and document.get("dependencies") and not document.get("dependency_lock"):
        document["dependency_lock"] = list(lock)
    return document


def _json(document: Any) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongManifest(f"A manifest is no JSON: {error}.") from error


def _package_of(files: Mapping[str, bytes]) -> str:
    if ABOUT not in files:
        raise WrongLayout(f"It is no capsule: it has no {ABOUT}.")
    said = _document(ABOUT, files[ABOUT])
    if said.get("format") != FORMAT:
        raise WrongLayout(f"It is a capsule of the format {str(said.get('format'))[:60]!r}; this reads {FORMAT!r}.")
    package = said.get("package")
    if said.keys() != {"format", "package"} or not isinstance(package, str):
        raise WrongLayout(f"{ABOUT} does not have exactly a format and a package.")
    try:
        check_package_name(package)
    except PackageError as error:
        raise WrongLayout(str(error)) from error
    return package


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise WrongLayout(f"{name} is not UTF-8 text.") from None


def _sentence(name: str, refusal: JsonRefused) -> str:
    match refusal.code:
        case "duplicate_key":
            return f"{name} has a key twice in one object."
        case "not_a_number":
            return f"{name} holds {refusal.subject}, which is not JSON."
        case _:
            return f"{name} is not JSON: {str(refusal.syntax or refusal)[:200].rstrip('.')}."


def _document(name: str, content: bytes) -> dict[str, Any]:
    """An object of JSON that can be read in one way only."""
    if len(content) > MAX_MANIFEST_BYTES:
        raise TooLarge(f"{name} has more than {MAX_MANIFEST_BYTES:,} bytes.")
    try:
        document = STRICT.read(_text(name, content))
    except JsonRefused as refusal:
        raise WrongManifest(_sentence(name, refusal)) from refusal
    if not isinstance(document, dict):
        raise WrongManifest(f"{name} is not a JSON object.")
    return document


def _check_lock(manifests: Mapping[str, dict[str, Any]], lock: tuple[str, ...]) -> None:
    for name, document in manifests.items():
        said = document.get("dependency_lock") or list(lock)
        if said != list(lock):
            raise WrongManifest(f"{name} has another lock than {LOCK}.")
        if lock and document.get("dependencies") and not document.get("dependency_lock"):
            raise WrongManifest(f"{name} has dependencies and does not say the lock that stands in {LOCK}.")


def _check_code(manifests: Mapping[str, dict[str, Any]], package: str, source: Mapping[str, bytes]) -> None:
    """Does each manifest name code of this package? What else it says is for the hub to judge."""
    for name, document in manifests.items():
        id = document.get("id")
        if not isinstance(id, str) or name != f"{MANIFESTS}{id}.json" or not isinstance(document.get("version"), str):
            raise WrongManifest(f"{name} is not named after the id in it, or has no version.")
        if not isinstance(document.get("implementation"), dict):
            raise WrongManifest(f"{name} does not say what implements the tool.")
        try:
            said = Manifest(document)
            if said.has_package and said.package != package:
                raise WrongManifest(f"{name} names code of {said.package!r}; the capsule holds {package!r}.")
            check_holds(said, source)
        except PackageError as error:
            raise WrongManifest(f"{name}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WrongManifest(f"{name} does not say what implements the tool.") from error
