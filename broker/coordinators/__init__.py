"""The shells of coordinators: partitions of their internal topics, markers and verifications."""
