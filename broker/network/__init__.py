"""Connections: bytes in, requests to their handlers in order, answers out, all of it in bounded memory."""
