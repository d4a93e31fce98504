"""``python -m costlib``."""

from costlib.cli import main

if __name__ == "__main__":
    main()
