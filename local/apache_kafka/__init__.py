"""Apache Kafka on this machine, from its published jars: the oracle, its tools, and the one to measure against."""
