"""The processes beside a node that read and write its logs: compaction and scrubbing (decisions 21, 23)."""
