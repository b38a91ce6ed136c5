"""pip, but for packages that name a file instead of a name.

Run as a program. ``--only-binary`` binds what pip finds in an index, and not a ``Requires-Dist: name @ https://…`` in a wheel:
pip would fetch that from anywhere and, were it no wheel, have its own code build it, on this host.
"""

from __future__ import annotations

import sys
from typing import Any

from pip._internal.cli.main import main
from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.requirements import Requirement

SAYS = "A package may need others by name only, not by address:"

_read = Requirement.__init__


def _read_names_only(self: Requirement, *args: Any, **options: Any) -> None:
    _read(self, *args, **options)
    if self.url:
        raise InstallationError(f"{SAYS} {self}")


if __name__ == "__main__":
    Requirement.__init__ = _read_names_only  # type: ignore[method-assign]
    sys.exit(main())
