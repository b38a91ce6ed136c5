"""pip, but for what names a file or an option instead of a name.

Run as a program. ``--only-binary`` binds what pip finds in an index, and not a ``Requires-Dist: name @ https://…`` in a wheel:
pip would fetch that from anywhere and, were it no wheel, have its own code build it, on this host. It would do the same with a path
or an address in a list that it is given, and a list may name an index, or another list.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pip._internal.cli.main import main
from pip._internal.exceptions import InstallationError
from pip._internal.req import constructors
from pip._internal.req.req_file import RequirementsFileParser
from pip._vendor.packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

SAYS = "A package may need others by name only, not by address:"

_OPTIONS = "A list of packages holds names, versions and hashes only, no option:"

_read = Requirement.__init__
_parse_line = constructors.parse_req_from_line
_parse_file = RequirementsFileParser._parse_file


def _read_names_only(self: Requirement, *args: Any, **options: Any) -> None:
    _read(self, *args, **options)
    if self.url:
        raise InstallationError(f"{SAYS} {self}")


def _parse_line_without_address(*args: Any, **options: Any) -> Any:
    found = _parse_line(*args, **options)
    if found.link:
        raise InstallationError(f"{SAYS} {found.link}")
    return found


def _parse_file_without_options(*args: Any, **options: Any) -> Iterator[Any]:
    """What stands beside a requirement on its line binds that one alone; a line without one is an option of all."""
    for line in _parse_file(*args, **options):
        if not line.args or line.is_editable:
            raise InstallationError(f"{_OPTIONS} line {line.lineno}.")
        yield line


if __name__ == "__main__":
    Requirement.__init__ = _read_names_only  # type: ignore[method-assign]
    constructors.parse_req_from_line = _parse_line_without_address
    RequirementsFileParser._parse_file = _parse_file_without_options  # type: ignore[method-assign, assignment]
    sys.exit(main())
