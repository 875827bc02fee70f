"""A cluster on this machine: node processes started, found again, resized and stopped."""
