"""The partitions of this node: replicas with their logs, and requests that wait for them."""
