"""Authentication: Host and Origin first, then the credential, then the scope."""
