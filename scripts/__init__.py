"""Programs for the people who work on farhand; the Makefile runs them."""
