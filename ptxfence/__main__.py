"""`python -m ptxfence`."""

from ptxfence.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
