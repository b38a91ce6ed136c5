"""Command without a script: ``python -m unitools``, as ``unitools`` (see :mod:`unitools.command`)."""

from __future__ import annotations

import sys

from unitools.command import main

if __name__ == "__main__":
    sys.exit(main())
