"""What a broker answers its clients."""
