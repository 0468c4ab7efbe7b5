"""farhand: lets a language model use hands that are not on the server."""
