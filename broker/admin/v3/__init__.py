"""The paths of Confluent's REST API, version 3."""
