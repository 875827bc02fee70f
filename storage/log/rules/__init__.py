"""Batches, producers and settings of a log: rules only."""
