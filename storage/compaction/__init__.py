"""Keeping the latest value of each key: what of a compacted log may go, and rewriting its segments without that."""
