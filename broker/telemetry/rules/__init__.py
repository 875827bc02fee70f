"""Which client is asked for which metrics, and what becomes of those that it pushes."""
