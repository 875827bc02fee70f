"""What an error of a disk means, and who holds a folder: rules only."""
