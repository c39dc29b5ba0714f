"""Entry point of the ``slimgrad`` command and of ``python -m slimgrad``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say in one line what is missing to run it."""
    try:
        from slimgrad.cli.app import run
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != "slimgrad":
            print(
                f"slimgrad: the command line needs the package {error.name!r}; "
                "install it with: pip install 'slimgrad[cli]'",
                file=sys.stderr,
            )
            sys.exit(2)
        raise
    run()


if __name__ == "__main__":
    main()
