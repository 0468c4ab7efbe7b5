"""Counts that must not grow: the cost of a round trip, without measuring time."""
