"""Local clusters, faults, workloads and verdicts."""
