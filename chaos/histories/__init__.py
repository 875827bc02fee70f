"""What clients did to a cluster and what they saw of it, as data that anybody can judge."""
