"""What a newcomer does, from the clone to the first answer."""
