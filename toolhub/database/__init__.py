"""Database set-up: row level security, roles and their rights, and what follows each migration."""
