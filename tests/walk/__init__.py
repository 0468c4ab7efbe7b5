"""The way of a newcomer, from the clone to the first answer."""
