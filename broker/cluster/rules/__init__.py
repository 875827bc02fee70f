"""The view of the cluster that clients get, and which voter a node asks next: rules only."""
