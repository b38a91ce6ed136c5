"""The bell, the sandbox and the begun database of the integration tests."""

from tests.integration.conftest import begun_database, bell, lines, sandbox

__all__ = ["begun_database", "bell", "lines", "sandbox"]
