"""A desktop program that lends its hands to a chat: it reads notes, searches them and shows notifications."""
