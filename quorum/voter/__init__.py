"""A voter around its Raft core: journal, snapshots, proposals, and the log of an observer."""
