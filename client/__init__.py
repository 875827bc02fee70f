"""Clients of a cluster: a connection that speaks the protocol, and the commands of the terminal."""
