"""The database engine for SQLite: Django's own, with one writer after the other."""
