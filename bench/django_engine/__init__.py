"""The database engine that ours is measured against: the same promises, kept by Django's own cursors alone."""
