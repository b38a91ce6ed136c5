"""Which files make the sandbox image, and what is it called?

The tag is a hash of those files, so that an image is built exactly once for each state of the sources and two checkouts
on one machine never take the other's. Standard library only: it is asked before anything is installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

REPOSITORY = "toolhub-sandbox"
ROOT = Path(__file__).resolve().parent.parent

# Where a file lies in the build context, and where it comes from.
CONTEXT = {
    "Dockerfile": "sandbox/Dockerfile",
    "assemble.py": "sandbox/assemble.py",
    "packages.txt": "sandbox/packages.txt",
    "toolhub/runner.py": "sandbox/runner.py",
    "toolhub/selfcheck.py": "sandbox/selfcheck.py",
    "toolhub/unitools/__init__.py": "unitools/__init__.py",
    "toolhub/unitools/runtime.py": "unitools/runtime.py",
}


def image_name(root: Path = ROOT) -> str:
    """For example ``toolhub-sandbox:4f1c…`` (12 digits)."""
    digest = hashlib.sha256()
    for name, source in sorted(CONTEXT.items()):
        content = (root / source).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"
