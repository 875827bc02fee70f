"""What segments are in the tier, without input and output."""
