"""Log directories, the logs of partitions in them, and the disks below."""
