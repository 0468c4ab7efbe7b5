"""What is stored: the only record. Notifications are hints."""
