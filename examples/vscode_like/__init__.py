"""An editor's program in Node that lends its hands to a chat: reads files, runs tests, applies patches."""
