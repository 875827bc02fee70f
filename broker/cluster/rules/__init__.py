"""What clients are told of the cluster, and whom a node asks next: rules only."""
