"""Commands of an operator that reach the controllers of a cluster."""
