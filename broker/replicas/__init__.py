"""The partitions that this node hosts: replicas with their logs, and the delayed operations that wait on them."""
