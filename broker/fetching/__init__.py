"""Fetch requests of consumers and followers: fetch sessions, reads, and the delayed fetch in purgatory."""
