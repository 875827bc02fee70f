"""Tiered storage (KIP-405): closed segments in an object store, their metadata in an internal topic."""
