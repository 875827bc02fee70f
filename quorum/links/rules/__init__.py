"""Proofs, certificates, frames and refusals of links: rules only."""
