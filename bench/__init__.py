"""Side-by-side benchmarks against any Kafka-compatible cluster."""
