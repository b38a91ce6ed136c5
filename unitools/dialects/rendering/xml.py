"""How are tools told to this dialect?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Options, Rendered


def render(tools: Sequence[ToolSpec], options: Options) -> Rendered:
    raise NotImplementedError
