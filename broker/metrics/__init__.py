"""What a node counts and measures, under the names by which Prometheus and dashboards of Apache Kafka know it."""
