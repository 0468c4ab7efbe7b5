"""What a developer sees of runs and calls: read-only, with secrets redacted."""
