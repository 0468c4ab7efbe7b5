"""farhand inside a host's own app, behind the host's own sign-in."""
