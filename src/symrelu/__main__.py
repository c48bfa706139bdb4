"""``python -m symrelu``: the command line if the command ``symrelu`` is not on the path."""

from symrelu.cli import main

if __name__ == "__main__":  # worker processes import this file too
    main()
