"""What clients did to a cluster and what they saw of it, as data: a verdict needs nothing but the file."""
