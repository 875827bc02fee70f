"""Quotas of clients: bytes, time of the event loop and connections that they may use in a second."""
