"""How far the queries of a job have come: for Prometheus, for tools that show lag, and on the terminal."""
