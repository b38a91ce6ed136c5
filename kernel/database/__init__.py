"""Database: the engines for PostgreSQL and SQLite, whose rows a statement sees, and statements prepared once."""
