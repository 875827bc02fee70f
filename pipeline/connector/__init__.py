"""What Spark needs to speak to Kafka: Java, the connector's jars, properties of clients."""
