"""Tools that behave in every way a tool can, for the tests."""
