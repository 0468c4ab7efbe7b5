"""The Inspector: what it shows, to whom, and what it hides."""
