"""Distributions of durations: rules only."""
