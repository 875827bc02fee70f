"""Pure: no input and output."""
