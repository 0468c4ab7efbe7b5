"""Servers on loopback that speak the APIs of providers and refuse what the providers refuse."""
