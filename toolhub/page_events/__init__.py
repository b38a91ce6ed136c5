"""Page events: how open pages of the console hear that something has become of what they show."""
