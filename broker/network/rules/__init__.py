"""Bounds of connections and their memory: rules only."""
