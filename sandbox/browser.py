"""Browser: what a tool with one needs that no other tool is given.

Found by taking away: with less the headless shell of Chromium 156 does not draw a page, and with no more it does. Its own
sandbox stays off, because it would need namespaces; the walls around the tool are inherited by every process that it starts,
renderers too. Of system calls it needs only what a tool with programs and a way out has. Because the processes of the box
can be seen through /proc, such a box is used once.
"""

from __future__ import annotations

import os

PACKAGES = "/usr/lib/toolhub/packages"  # of the image: Playwright
SHARED_MEMORY = "/dev/shm"

RUNNABLE = (
    "/usr/lib/chromium/chromium-headless-shell",
    f"{PACKAGES}/playwright/driver/node",
    "/usr/bin/certutil",
)
READABLE = ("/proc", "/etc/fonts")
WRITABLE = (SHARED_MEMORY,)
DESCRIPTORS = 1024


def prepare_shared_memory() -> None:
    """The folder for shared memory, which the engine mounts, is the tool's own."""
    if os.path.isdir(SHARED_MEMORY):
        os.chmod(SHARED_MEMORY, 0o700)
