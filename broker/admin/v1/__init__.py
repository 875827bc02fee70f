"""The paths that Kafka's REST API does not have: quorum, maintenance, health, events."""
