"""Witness command: how a witness is started where there is no hub. ``python -m evidence.witnesses --name … --log … --dir …``"""

from __future__ import annotations

import argparse
import contextlib

from evidence.witnesses.server import add_arguments, serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="toolhub witness", description="See that a hub's log rewrites nothing.")
    add_arguments(parser)
    with contextlib.suppress(KeyboardInterrupt):
        serve(**vars(parser.parse_args()))
