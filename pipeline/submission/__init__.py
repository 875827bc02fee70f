"""Jobs on a cluster of Spark: the line of spark-submit, and the program that it runs."""
