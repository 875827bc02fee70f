"""Faults, simulated clusters, workloads and the checkers of their histories."""
