"""One partition's log on one disk: segments, indexes, recovery."""
