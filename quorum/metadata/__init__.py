"""What the cluster agrees on: records, the image that they make, and how it is replayed and told."""
