"""Judges of what clients saw: pure functions from histories to anomalies."""
