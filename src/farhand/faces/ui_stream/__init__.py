"""The chat stream that AI SDK's `useChat` reads."""
