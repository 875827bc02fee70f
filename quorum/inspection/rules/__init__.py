"""An image as a tree of names, and the commands of the metadata shell: rules only."""
