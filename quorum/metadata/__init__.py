"""Metadata records, the image that they make, how it is replayed, and its publishers."""
