"""Attacks on every face, and what works after them."""
