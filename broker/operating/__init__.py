"""Commands for whoever has a node's configuration: they ask controllers for what only the cluster's own may ask."""
