"""What a page needs in addition to the stream: its chats, their messages, open calls and tools."""
