"""Programs to copy: each one file, with confluent_kafka and the standard library; docs/use-cases.md runs them."""
