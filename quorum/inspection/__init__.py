"""Looking at the metadata that lies on a disk, without a node and without changing anything."""
