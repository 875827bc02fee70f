"""Purgatory, and the timer wheels below it."""
