"""The PostgreSQL store: what it does beyond the laws."""
