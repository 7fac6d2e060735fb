"""``python -m benchrunner``."""

from benchrunner.cli import main

main()
