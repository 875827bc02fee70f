"""The only place of side effects: session, checkpoint, signals, and the life of a query."""
