"""Tools: how they are declared, looked up, checked and executed."""
