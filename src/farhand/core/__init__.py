"""Nouns and rules: no await, no clock, no chance, no framework."""
