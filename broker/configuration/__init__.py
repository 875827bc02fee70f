"""What a node, its listeners and its topics are configured to do, at start and while it runs."""
