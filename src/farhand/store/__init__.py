"""What is kept: the only record. Notifications are hints."""
