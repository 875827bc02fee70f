"""The data pipeline: PySpark Structured Streaming jobs."""
