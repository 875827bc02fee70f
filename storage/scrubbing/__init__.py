"""Looking for damage in what lies on the disk and is not read."""
