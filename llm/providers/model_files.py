"""Model files: a GGUF file that somebody put into the hub's folder of models, and what it can do.

What it can do is known by how it pools: the vectors of tokens become one (``mean``, ``cls``, ``last``), a score (``rank``), or stay
apart (``none``), as they do in a model that goes on with a conversation. A file says it itself, or the provider's option does.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from llm.problems import ModelFileUnusable, ParameterUnsupported
from llm.providers.gguf_headers import HeaderRefused, read_header

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from llm.providers.gguf_headers import GgufHeader

Operation = Literal["chat", "embed", "rerank"]
POOLINGS = ("none", "mean", "cls", "last", "rank")  # by llama.cpp's numbers
SAYS = {
    "chat": "goes on with a conversation",
    "embed": "makes vectors of texts",
    "rerank": "orders texts by a query",
}
# Models that read a text as a whole, and write none.
ENCODERS = re.compile(r"bert|t5encoder|embedding")
HEADS = {"cls.weight", "cls.output.weight"}  # of a classifier, which gives a score
PART = re.compile(r"-(\d{5})-of-(\d{5})$")
KINDS = {  # of GGUF files that are no models by themselves
    "adapter": "is an adapter and no model: merge it into its model with llama.cpp",
    "mmproj": "is the part of a model that sees: use the file of the model itself",
    "clip": "is the part of a model that sees: use the file of the model itself",
    "imatrix": "holds figures for making models smaller and no model: use the file of the model itself",
}
Identity = tuple[int, ...]  # four numbers of each part


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file as it was when it was looked at. ``context_tokens``: what the model was made for, where it says so. ``later_parts``: of
    a model in several files."""

    name: str
    path: Path
    identity: Identity  # another one: the file was replaced
    title: str
    pooling: str
    is_encoder: bool
    context_tokens: int | None
    later_parts: tuple[Path, ...] = ()

    @property
    def is_unchanged(self) -> bool:
        return read_identity(self.path, *self.later_parts) == self.identity

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Texts can be ordered by their vectors, too."""
        match self.pooling:
            case "rank":
                return ("rerank",)
            case "none":
                return () if self.is_encoder else ("chat",)
        return ("embed", "rerank")

    def check_can(self, operation: Operation) -> None:
        """Raises ParameterUnsupported, with what the file can do."""
        if operation in self.operations:
            return
        refused = f"The model's file {self.path.name} does not do this ({operation})"
        if self.operations:
            can = self.operations[0]
            remedy = f"Connect it with `operation: {can}`, or choose another model."
            raise ParameterUnsupported(f"{refused}: it {SAYS[can]}.", remedy=_extend(remedy, operation, self.name))
        said = f"{refused}: it does not say how it pools, and so not what it is for."
        raise ParameterUnsupported(said, remedy=_extend("", "embed", self.name))


def _extend(remedy: str, operation: Operation, name: str) -> str:
    if operation == "chat":
        return remedy
    pooling = "rank" if operation == "rerank" else "mean"
    option = f"If it was made for it, say so in the provider's options: `pooling: {{{name}: {pooling}}}`."
    return f"{remedy} {option}".strip()


def inspect_file(name: str, path: Path, pooling: str = "") -> ModelFile:
    """``pooling``: what stands over the file's own. Raises ModelFileUnusable, with what to do."""
    try:
        about = path.stat()
        _check_is_file(about.st_mode)
        header = read_header(path, HEADS)
        _check_is_model(header)
        later_parts = _find_later_parts(path, header)
        identity = (
            *_build_identity(about),
            *(number for part in later_parts for number in _build_identity(part.stat())),
        )
        way = pooling or find_pooling(header)
    except HeaderRefused as refused:
        raise refuse_file(path, str(refused)) from None
    except OSError as error:
        raise refuse_file(path, _describe_error(error, path)) from error
    return ModelFile(
        name,
        path,
        identity,
        str(header.values.get("general.name", "")),
        way,
        is_encoder(header),
        header.find_count("context_length"),
        later_parts,
    )


def read_identity(*parts: Path) -> Identity | None:
    """As they are now; None where nothing can be said."""
    try:
        return tuple(number for part in parts for number in _build_identity(part.stat()))
    except OSError:
        return None


def _build_identity(about: os.stat_result) -> Identity:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def refuse_file(path: Path, ending: str) -> ModelFileUnusable:
    return ModelFileUnusable(f"The model's file {path.name} {ending}.")


def find_pooling(header: GgufHeader) -> str:
    """Raises HeaderRefused for a file that is to give scores and lacks what makes them: the runtime would answer numbers."""
    said = header.find_count("pooling_type")
    if said == POOLINGS.index("rank") and not header.found:
        raise HeaderRefused("says that it orders texts, and has no head for that: convert it with a present llama.cpp")
    if said is not None and 0 < said < len(POOLINGS):
        return POOLINGS[said]
    return "rank" if header.found else "none"


def is_encoder(header: GgufHeader) -> bool:
    is_causal = header.values.get(f"{header.architecture}.attention.causal", True)
    return is_causal is False or ENCODERS.search(header.architecture) is not None


def _check_is_file(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise HeaderRefused("is a folder: put the model's file itself in its place")
    if not stat.S_ISREG(mode):
        raise HeaderRefused("is no regular file: put the model's file itself in its place")


def _check_is_model(header: GgufHeader) -> None:
    for said in (header.values.get("general.type"), header.architecture):
        if said in KINDS:
            raise HeaderRefused(KINDS[str(said)])
    if not header.architecture or not header.tensors:
        raise HeaderRefused("holds no model: it has no weights")


def _find_later_parts(path: Path, header: GgufHeader) -> tuple[Path, ...]:
    """Those beside a model's first. Raises HeaderRefused where it is not the first, or one is not there."""
    count = header.values.get("split.count", 1)
    if type(count) is not int or count <= 1:
        return ()
    found = PART.search(path.stem)
    if found is None or int(found[2]) != count:
        raise HeaderRefused(f"is one of {count} parts and was renamed: give the parts their names back")
    names = [f"{path.stem[: found.start()]}-{part:05d}-of-{count:05d}{path.suffix}" for part in range(1, count + 1)]
    if missing := next((each for each in names if not path.with_name(each).is_file()), ""):
        raise HeaderRefused(f"is one of {count} parts, and {missing} is not beside it: put it there")
    if path.name != names[0]:
        raise HeaderRefused(f"is a later part of a model: name the first, {names[0].removesuffix(path.suffix)}")
    return tuple(path.with_name(each) for each in names[1:])


def _describe_error(error: OSError, path: Path) -> str:
    if isinstance(error, PermissionError):
        return "may not be read by the hub: let the hub's user read it (`chmod a+r`), and open its folder"
    if isinstance(error, FileNotFoundError):
        return (
            "is a link to a file that is not there: put the file there, or mend the link"
            if path.is_symlink()
            else "is not there: put it back, or choose another model"
        )
    if path.is_symlink():
        return "is a link that leads nowhere: put the model's file itself in its place"
    return f"cannot be read ({error.strerror or type(error).__name__}): look at the disk, or copy it again"
