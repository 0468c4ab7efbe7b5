"""`python -m farhand` is `farhand`."""

from farhand.cli import main

main()
