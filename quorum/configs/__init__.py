"""Every configuration key of Apache Kafka: its type, default, limits and meaning, and what values are in effect."""
