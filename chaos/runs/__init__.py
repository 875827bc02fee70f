"""Commands of `penstock chaos`."""
