"""Stores of one append-only log per thread, with look-up tables beside it."""
