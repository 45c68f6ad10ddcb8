"""`python -m carnet` is `carnet`."""

from carnet.cli.main import main

if __name__ == "__main__":
    main()
