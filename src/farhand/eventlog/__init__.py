"""The log between the rules and the store: cached states, decide and append, subscriptions, readers."""
