"""The bell, the sandbox and the empty database of the integration tests."""

from tests.integration.conftest import bell, empty_database, lines, sandbox

__all__ = ["bell", "empty_database", "lines", "sandbox"]
