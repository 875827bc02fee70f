"""Names and texts of the files of a log directory: rules only."""
