"""Capabilities: what a run may reach, Grant ∩ Manifest ∩ Policy.

:class:`Capabilities` is the value, with ``&`` and ``<=``. :func:`explain` says who dropped what; :func:`effective` does both for a
call. Pure: nothing here reads a database or a setting.
"""

from unitools.capabilities.algebra import BOTTOM, TOP, Capabilities, meet_cached
from unitools.capabilities.explanation import build_allow_list_bound, effective, explain, list_missing_capabilities
from unitools.capabilities.wire import BROWSER_ACTIONS, CEILINGS, DOMAINS, FILE_ACTIONS

__all__ = [
    "BOTTOM",
    "BROWSER_ACTIONS",
    "CEILINGS",
    "DOMAINS",
    "FILE_ACTIONS",
    "TOP",
    "Capabilities",
    "build_allow_list_bound",
    "effective",
    "explain",
    "list_missing_capabilities",
    "meet_cached",
]
