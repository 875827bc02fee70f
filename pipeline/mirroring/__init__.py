"""Copies each record of a partition exactly once: transactional writers, positions, the offset map of groups."""
