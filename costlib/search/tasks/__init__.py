"""Which task is searched next, and which tasks help one another."""
