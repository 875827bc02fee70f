"""Request handlers: one module for each API or family of APIs. Kafka: `KafkaApis`, `ControllerApis`."""
