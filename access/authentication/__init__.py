"""Authentication: which agent or person sends a request to the API."""
