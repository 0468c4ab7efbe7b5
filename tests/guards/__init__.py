"""Counts that must not grow: what a round trip costs, told without a clock."""
