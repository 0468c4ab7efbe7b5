"""A desktop program that offers tools to a chat: it reads and searches notes and shows notifications."""
