"""toolhub-boxd: the daemon of a sandbox host, as a process (``python -m toolhub.boxd``; with ``--check``: whether it answers).

It alone holds the host's engine, pool of boxes, egress gate and folders of dependencies. It has no address of a database, no key of
the hub and no Django: whoever takes it over has the calls of this host, and no evidence.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from pathlib import Path

from invocations.sandbox.box_settings import BoxSettings
from invocations.sandbox.boxd.caches import FolderCache, FolderNotOwned, PackageCache
from invocations.sandbox.boxd.daemon import Boxd, BoxHost
from invocations.sandbox.engine import EngineError
from invocations.sandbox.isolation.runtime_lines import describe_runtimes
from invocations.sandbox.remote.connection import HostAddress, HostUnavailable
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.identities import Identity, IdentityFiles, IdentityUnusable
from sandbox.image import image_name
from toolhub import variables

log = logging.getLogger("toolhub.boxd")
MIB = 1024 * 1024
PACKAGES_BYTES = 256 * MIB


def check() -> int:
    """Whether the daemon of this host answers at its socket. Exit code 1: it does not."""
    host = RemoteHost(HostAddress(f"unix://{variables.TOOLHUB_BOXD_SOCKET}"))
    try:
        for line in host.ask(contract.CHECK, walls=contract.NO_WALLS).head["lines"]:
            sys.stdout.write(f"{line['said']}\n")
    except HostUnavailable as error:
        sys.stdout.write(f"{error}\n")
        return 1
    finally:
        host.close()
    return 0


def main() -> int:
    """Serve until told to end. Exit code 1: it could not begin."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    gc.enable()  # the package switches it off until Django's apps are there
    if variables.VARIABLES.mistakes:
        log.critical(" ".join(variables.VARIABLES.mistakes))
        return 1
    for sentence in variables.VARIABLES.unknown():
        log.warning(sentence)
    if not variables.TOOLHUB_BOXD_SOCKET and not variables.TOOLHUB_BOXD_BIND:
        log.critical("Nobody could ask it: set TOOLHUB_BOXD_SOCKET, TOOLHUB_BOXD_BIND, or both.")
        return 1
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        boxd = _start()
    except (OSError, IdentityUnusable, EngineError, FolderNotOwned) as error:
        log.critical("It cannot begin: %s", error)
        return 1
    stop.wait()
    log.info("Told to end: open calls have %s s", variables.TOOLHUB_BOXD_DRAIN_S)
    boxd.stop(drain_s=variables.TOOLHUB_BOXD_DRAIN_S)
    return 0


def _start() -> Boxd:
    folders = FolderCache(Path(variables.TOOLHUB_BOXD_DEPENDENCY_DIR).absolute(), variables.TOOLHUB_BOXD_CACHE_MB * MIB)
    folders.start()
    boxes = read_box_settings()
    boxes.data_dir.mkdir(parents=True, exist_ok=True)
    checks = boxes.build_checks()
    sandbox = boxes.build_sandbox(checks)
    sandbox.start()
    host = BoxHost(
        sandbox,
        PackageCache(PACKAGES_BYTES),
        folders,
        sandbox.is_full,
        lambda every: describe_runtimes(checks, variables.TOOLHUB_SANDBOX_RUNTIMES, every=every),
        read_identity(),
    )
    boxd = Boxd(host, workers=variables.TOOLHUB_BOXD_WORKERS)
    if variables.TOOLHUB_BOXD_BIND:
        address, _, port = variables.TOOLHUB_BOXD_BIND.rpartition(":")
        boxd.listen_on_port(address.strip("[]"), int(port))
        log.info("Answers under TLS at %s", variables.TOOLHUB_BOXD_BIND)
    if variables.TOOLHUB_BOXD_SOCKET:
        boxd.listen_on_socket(Path(variables.TOOLHUB_BOXD_SOCKET))
        log.info("Answers at the socket %s", variables.TOOLHUB_BOXD_SOCKET)
    return boxd


def read_identity() -> Identity | None:
    """None where it only answers over a socket."""
    if not variables.TOOLHUB_BOXD_BIND:
        return None
    named = (
        variables.TOOLHUB_SANDBOX_TLS_CA,
        variables.TOOLHUB_SANDBOX_TLS_CERTIFICATE,
        variables.TOOLHUB_SANDBOX_TLS_KEY,
    )
    if not all(named):
        raise IdentityUnusable("TOOLHUB_BOXD_BIND needs TOOLHUB_SANDBOX_TLS_CA, …_CERTIFICATE and …_KEY.")
    return Identity(IdentityFiles(*map(Path, named)), serves=True)


def read_box_settings() -> BoxSettings:
    """What the operator of this host has set, read from the environment alone."""
    return BoxSettings(
        image=variables.TOOLHUB_SANDBOX_IMAGE or image_name(),
        instance=variables.TOOLHUB_INSTANCE,
        data_dir=Path(variables.TOOLHUB_DATA_DIR),
        engine_url=variables.TOOLHUB_DOCKER_URL or None,
        runtimes=variables.TOOLHUB_SANDBOX_RUNTIMES,
        level=variables.TOOLHUB_SANDBOX_LEVEL,
        networks=variables.TOOLHUB_SANDBOX_NETWORKS,
        ca_file=Path(variables.TOOLHUB_SANDBOX_CA_FILE) if variables.TOOLHUB_SANDBOX_CA_FILE else None,
        run_dir=Path(variables.TOOLHUB_SANDBOX_RUN_DIR) if variables.TOOLHUB_SANDBOX_RUN_DIR else None,
        max_boxes=variables.TOOLHUB_SANDBOX_MAX_BOXES,
        max_memory_mb=variables.TOOLHUB_SANDBOX_MAX_MEMORY_MB,
        ready=variables.TOOLHUB_SANDBOX_READY,
        idle_s=variables.TOOLHUB_SANDBOX_IDLE_S,
        load_s=variables.TOOLHUB_SANDBOX_LOAD_S,
    )


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else main())
