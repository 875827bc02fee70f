"""Names and meanings of metrics: rules only."""
