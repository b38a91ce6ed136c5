"""Keys: master keys and their stores, the keys of subjects, rotation, and what a key wraps."""
