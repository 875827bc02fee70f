"""The web page of a node: its files, as they are sent."""
