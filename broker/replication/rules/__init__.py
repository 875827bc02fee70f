"""What a follower fetches, truncates and throttles: rules only."""
