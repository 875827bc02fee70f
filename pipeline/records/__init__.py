"""Decodes values of records (JSON, Avro, Protobuf), and sends those that cannot be decoded to a dead-letter topic."""
