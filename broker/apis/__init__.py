"""What the node answers: one module for each API or family of them."""
