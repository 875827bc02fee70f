"""What is in the tier, what goes there, what leaves it, and where reads find it."""
