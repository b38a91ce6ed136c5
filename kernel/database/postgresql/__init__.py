"""The database engine for PostgreSQL: Django's own, with each statement bound to the tenant it is made for."""
