"""Identities and permissions of clients."""
