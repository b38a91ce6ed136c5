"""Brought sources: the kinds of what ``unitools bring`` makes tools of, a module each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.command import mcp_servers, openapi_services, python_objects, remote_servers

if TYPE_CHECKING:
    import argparse

KINDS = {
    "mcp": (mcp_servers, "an MCP server that speaks over stdio, from a package of PyPI or npm"),
    "remote": (remote_servers, "an MCP server that is somewhere else, by its address"),
    "python": (python_objects, "tools of LangChain or CrewAI, and plain functions"),
    "openapi": (openapi_services, "operations of a service that an OpenAPI document describes"),
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(required=True, metavar="KIND")
    for name, (module, purpose) in KINDS.items():
        kind = kinds.add_parser(name, help=purpose, allow_abbrev=False)
        module.add_arguments(kind)
        kind.set_defaults(bring=module.run)


def run(options: argparse.Namespace) -> int:
    found: int = options.bring(options)
    return found
