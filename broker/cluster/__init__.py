"""The other nodes, as this one reaches and knows them: metadata, controllers, brokers."""
