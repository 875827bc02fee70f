"""A year of flights and weather goes through jobs on Spark, and what comes out is compared with pandas."""
