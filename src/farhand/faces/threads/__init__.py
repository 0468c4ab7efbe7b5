"""What a page needs beside the stream: its chats, their messages, open calls and tools."""
