"""What a transaction is about to write, and what each write means: the same for every store with tables."""
