"""The checker of the queue workload: every anomaly of jepsen.tests.kafka, over arrays for millions of events."""
