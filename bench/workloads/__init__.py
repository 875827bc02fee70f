"""The loads that are put on a cluster, one noun a module."""
