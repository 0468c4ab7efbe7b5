"""Registered clients: programs elsewhere that run tools, their sessions, and the calls they get."""
