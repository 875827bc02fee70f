"""A year of flights out of New York goes into a cluster and comes back, all of it, in order."""
