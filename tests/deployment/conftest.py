"""Every example of the chart, for tests of what all of them must keep to."""

from __future__ import annotations

import pytest

from tests.support.rendered_chart import EXAMPLES, Rendered, read


@pytest.fixture(params=[path.stem for path in EXAMPLES])
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return read(str(request.param))
