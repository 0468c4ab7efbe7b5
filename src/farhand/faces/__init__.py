"""One folder per wire protocol; none knows another."""
