"""What a page needs around the stream: its chats, their messages, what is open, which tools there are."""
