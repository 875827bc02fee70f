"""Fetch sessions and the choice of a replica: rules only."""
