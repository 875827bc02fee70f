"""What coordinators ask of other brokers, as requests of the protocol: rules only."""
