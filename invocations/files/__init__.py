"""Files: what a tenant's tools may read and write, stored encrypted."""
