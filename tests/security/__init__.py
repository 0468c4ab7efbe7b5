"""Attacks on every face, and what is left standing after them."""
