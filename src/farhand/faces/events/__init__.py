"""One stream of everything that happens to an owner's runs, calls and clients."""
