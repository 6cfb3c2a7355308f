"""`python -m climate` is the `climate` command."""

from climate.cli import main

main()
