"""An editor's program in Node that offers tools to a chat: it reads files, runs tests and applies patches."""
