"""Call costs: what each call that took money has taken, and what a tenant has spent in a time."""
