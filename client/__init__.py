"""Looking in from outside: protocol connection, terminal commands."""
