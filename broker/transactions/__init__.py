"""Transactions: what producers with a transactional id write becomes visible in all partitions or in none (KIP-98)."""
