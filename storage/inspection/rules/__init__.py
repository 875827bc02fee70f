"""What an inspection decides, without files."""
