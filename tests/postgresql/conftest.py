"""The bell and the sandbox of the integration tests."""

from tests.integration.conftest import bell, sandbox

__all__ = ["bell", "sandbox"]
