"""Programs for contributors; the Makefile runs them."""
