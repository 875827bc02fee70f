"""Faults of a running node: what it is told goes wrong with its disk and its clock, and disks that really are full."""
