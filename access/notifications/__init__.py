"""Notifications: channels that tell people what waits for them, and the deliveries to each."""
