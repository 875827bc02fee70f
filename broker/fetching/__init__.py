"""Fetches of consumers and followers: sessions, reads, and waiting for more."""
