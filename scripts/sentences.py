"""Sentences: what services say when they refuse, as messages to translate.

They are plain strings and f-strings in the sources: in calls of classes of problems and of what makes them, and in findings. A value
within becomes a numbered field (``There is no tool {0} here.``), by which :mod:`kernel.components.sentences` knows a sentence again.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from itertools import count
from pathlib import Path

from unitools.changes import KINDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["access", "evidence", "invocations", "kernel", "llm", "registry", "toolhub"]
# Whose refusals people read on pages.
PLACES = (
    "access/",
    "registry/",
    *(f"evidence/{each}" for each in ("erasures", "exports", "integrity", "retention", "search", "sinks", "services")),
    "invocations/",
    *("kernel/principal", "kernel/http/console", "kernel/http/exception_handlers", "kernel/http/pagination"),
    "toolhub/configuration/services",
)
# Within them: what only programs and operators of hosts read.
BESIDE = (
    *(
        f"access/oauth/{each}"
        for each in ("client", "cross", "identity", "known", "metadata", "redirect", "registration")
    ),
    *(f"access/oauth/{each}" for each in ("tokens", "validator")),
    *("access/authentication", "access/connections/assertions", "evidence/exports/downloads"),
    *("evidence/exports/storage", "registry/discovery", "registry/model_providers/circuits"),
    *(f"invocations/{each}" for each in ("callbacks", "event_streams", "mcp", "model_calls", "proposals", "dispatch")),
)
MAKERS = {"at", "refuse", "_refuse", "_fail"}  # beside the classes themselves
NAMED = {"detail", "remedy"}
LEAST_LETTERS = 8  # of a sentence's own: with fewer it would be found in others


def _is_within(path: Path, places: tuple[str, ...]) -> bool:
    return path.relative_to(ROOT).as_posix().startswith(places)


def _read_trees() -> dict[Path, ast.Module]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path: ast.parse(path.read_text()) for path in paths if "migrations" not in path.parts}


def _find_problem_classes(trees: dict[Path, ast.Module]) -> set[str]:
    """By name, as they derive from ``Problem``."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Problem"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


def write_sentence(node: ast.expr) -> str:
    """The message of a string or an f-string; empty of anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            text, number = "", 0
            for each in values:
                if isinstance(each, ast.Constant):
                    text += str(each.value).replace("{", "{{").replace("}", "}}")
                else:
                    text, number = f"{text}{{{number}}}", number + 1
            return text
    return ""


def is_sentence(text: str) -> bool:
    return " " in text.strip() and len(re.findall(r"[^\W\d_]", re.sub(r"\{\d+\}", "", text))) >= LEAST_LETTERS


def _find_said(tree: ast.Module, makers: set[str]) -> list[ast.expr]:
    said: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in makers:
            said += node.args
            said += [each.value for each in node.keywords if each.arg in NAMED]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            said += [each for key, each in pairs if isinstance(key, ast.Constant) and key.value == "message"]
    return said


def _find_named(tree: ast.Module) -> defaultdict[str, list[ast.expr]]:
    """What each name stands for somewhere in the module."""
    found: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            together = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            names = target.elts if isinstance(target, ast.Tuple) and together else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) and together else [node.value]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name):
                    found[name.id].append(value)
    return found


def _list_choices(node: ast.expr) -> list[ast.expr]:
    return [*_list_choices(node.body), *_list_choices(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def collect_sentences() -> set[str]:
    trees = _read_trees()
    makers = MAKERS | _find_problem_classes(trees)
    found: set[str] = set()
    for path, tree in trees.items():
        if path.name == "api.py" or not _is_within(path, PLACES) or _is_within(path, BESIDE):
            continue
        named = _find_named(tree)
        for node in _find_said(tree, makers):
            for each in _list_choices(node):
                meant = named[each.id] if isinstance(each, ast.Name) else [each]
                found.update(write_sentence(one) for value in meant for one in _list_choices(value))
    return {text for text in found | collect_change_sentences() if is_sentence(text)}


def collect_change_sentences() -> set[str]:
    """What reviewers read of the changes of a version. The values before and after become numbered fields as well."""
    return {_number_fields(kind.text) for kind in KINDS.values()}


def _number_fields(text: str) -> str:
    numbers = count()
    return re.sub(r"\{(?:before|after)\}", lambda _: f"{{{next(numbers)}}}", text)
