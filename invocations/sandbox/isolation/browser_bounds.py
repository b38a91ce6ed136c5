"""Browser bounds: those of a browser that nobody can hold it to.

The tool drives the browser, inside the tool's own box: what it does on a page is the tool's to decide, and its connections
are the box's. A bound that is no narrower than the way out of the box holds by itself. Any other would be a promise that
nobody keeps, so a call with one does not start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.capabilities import BROWSER_ACTIONS, TOP
from unitools.capabilities.forest import BROWSERS, Forest
from unitools.capabilities.values import Actions
from unitools.capabilities.wire import browser_names

if TYPE_CHECKING:
    from unitools.capabilities import Capabilities


def list_unenforceable_bounds(capabilities: Capabilities) -> tuple[str, ...]:
    """What is asked of the browser, as short texts, where it is less than the box can do; else nothing."""
    browser = capabilities.browser
    if not browser or browser == TOP.browser:
        return ()
    everything = Actions(BROWSER_ACTIONS)
    by_name = Forest(BROWSERS, [(node, everything) for node in capabilities.net.rules])
    by_address = bool(capabilities.cidr)  # which no rule about names holds, but the one about all
    if by_name <= browser and not by_address:
        return ()
    return tuple(sorted(name for node, actions in browser.own() for name in browser_names(node, actions)))
