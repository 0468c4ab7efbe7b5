"""What happens to an owner's runs, calls and clients, as one stream."""
