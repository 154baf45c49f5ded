"""`python -m soundmark`: the same as the `soundmark` command."""

from soundmark.cli import main

if __name__ == "__main__":
    main()
