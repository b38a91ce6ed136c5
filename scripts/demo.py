"""Demonstration: what toolhub does. Told over REST against a running hub, step by step, with real answers. `make demo` runs it.

Without `--model` an agent shops, and no model is asked; with it a model answers a customer, and each call that it proposes is decided.
Uses what `make run` has left in the data directory (``demo-credentials.json``) and the standard library. What people do is done as
they do it: through the console's forms, with a session and a CSRF token. May be run again and again.

Exit status: 0 the story held; 1 no hub, or no credentials or no model for it; 2 the hub answered something else than the story says.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.demonstration.hub_clients import DemoAgent, DemoPerson, HubUnreachable, StoryBroken  # noqa: E402
from scripts.demonstration.model_story import tell_model_story  # noqa: E402
from scripts.demonstration.order_story import tell_evidence, tell_order, tell_shopping  # noqa: E402
from scripts.demonstration.output import Steps, print_line  # noqa: E402
from scripts.demonstration.shop_assistant import prepare_assistant  # noqa: E402
from toolhub.variables import TOOLHUB_DATA_DIR, TOOLHUB_PUBLIC_URL, VARIABLES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

AGENT = "shopping-assistant"
OWNER, OPERATOR, AUDITOR = "oona", "olivia", "aaron"


@dataclass(frozen=True, slots=True)
class DemoCast:
    """Who tells the story, with the credentials that `make run` wrote."""

    base: str
    folder: Path
    api_key: str
    passwords: dict[str, str]

    @classmethod
    def read(cls) -> DemoCast:
        if VARIABLES.mistakes:
            raise HubUnreachable(" ".join(VARIABLES.mistakes))
        path = TOOLHUB_DATA_DIR / "demo-credentials.json"
        try:
            kept = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise HubUnreachable(
                f"{path} cannot be read ({error}). `make run` writes it; TOOLHUB_DATA_DIR says where."
            ) from error
        return cls(TOOLHUB_PUBLIC_URL.rstrip("/"), path.parent, kept["api_key"], kept["passwords"])

    def sign_in(self, name: str) -> DemoPerson:
        person = DemoPerson(self.base)
        person.sign_in(name, self.passwords[name])
        return person


def tell_without_model(cast: DemoCast) -> str:
    """Returns the page that the story ends on."""
    agent, person, step = DemoAgent(cast.base, cast.api_key, AGENT), cast.sign_in(OPERATOR), Steps()
    print_line(f"toolhub at {cast.base}, told by the agent {AGENT}.")
    cart = tell_shopping(step, agent)
    made = tell_order(step, agent, person, cart)
    tell_evidence(step, agent, made)
    return f"/invocations/{made.call_id}"


def tell_with_model(cast: DemoCast, wanted: str) -> str:
    """Returns the page that the story ends on."""
    owner, operator, auditor = (cast.sign_in(name) for name in (OWNER, OPERATOR, AUDITOR))
    agent, model = prepare_assistant(cast.base, cast.folder, wanted, owner=owner, operator=operator)
    print_line(f"toolhub at {cast.base}, told by the agent {agent.name} and the model {model}.")
    run_id = tell_model_story(Steps(), agent, model, operator=operator, auditor=auditor, folder=cast.folder)
    return f"/runs/{run_id}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="Tell what toolhub does, against a running hub.")
    parser.add_argument(
        "--model",
        metavar="NAME",
        default="",
        help="let this model answer a customer: its id, its alias, or provider:alias, for example local:smollm2",
    )
    options = parser.parse_args(arguments)
    try:
        cast = DemoCast.read()
        page = tell_with_model(cast, options.model) if options.model else tell_without_model(cast)
    except HubUnreachable as error:
        print(error, file=sys.stderr)
        return 1
    except StoryBroken as error:
        print(f"\nThe story broke here. {error}", file=sys.stderr)
        return 2
    except (LookupError, TypeError, ValueError) as error:
        print(f"\nThe story broke here. An answer lacks a part: {error!r}", file=sys.stderr)
        return 2
    print_line(f"\nThe timeline of it, for people who can sign in:\n    {cast.base}{page}")
    print_line(f"    as {OPERATOR} / {cast.passwords[OPERATOR]}, or as an auditor (`make run` printed both).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
