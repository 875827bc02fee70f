"""What a controller answers on its own listener."""
