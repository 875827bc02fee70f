"""Known bugs of replication as patches to named seams: what shows that the simulation and the tests can fail."""
