"""Pool: which box serves which call, and when one is made or ended; no engine, no thread, no clock."""
