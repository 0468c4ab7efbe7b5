"""Nouns and rules: no await, no clock, no randomness, no framework."""
