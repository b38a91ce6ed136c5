"""Dependencies: how third-party packages that a tool needs get to where its calls run.

A manifest names them with exact versions. Before anybody approves the version they are **locked**: every package that comes
along, with its version and the SHA-256 of its file, from the manifest itself or found by the hub in the background. Once
somebody uses the version, each worker host **builds** a folder of exactly these files: wheels only, nothing of them is run,
byte-compiled, read-only, named by what is in it. A call never builds anything: it finds the folder or is refused.

::

    target   for which Python and machine, and so the name of a folder
    failures what went wrong, in a sentence with a remedy
    process_runner  a program beside us: its lines, its time, its end
    pip      resolve and install, with the operator's index or wheelhouse
    store    the folders of this host: whole or not there
    build_steps  pip and the store, one step after the other
    states   the row in the database: who is at it, what came of it, each step a fact
    builder  the loop beside the worker
    readiness what a call is told; the folder that it gets
"""

from registry.dependencies.readiness import check_ready, find_dependency_folder

__all__ = ["check_ready", "find_dependency_folder"]
