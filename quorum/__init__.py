"""What the cluster agrees on: consensus, metadata records, image, the controller's decisions."""
