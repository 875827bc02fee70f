"""One partition's log: segments, indexes, recovery, retention."""
