"""The running node: listeners, request handlers, partitions."""
