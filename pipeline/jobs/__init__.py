"""The jobs, one module for each."""
