"""The partitions of this node: rules of one replica, its log beside them, and the table of all."""
