"""What coordinators of groups and of transactions have in common: state replayed from a partition of a topic."""
