"""``python -m stackbuild``."""

from stackbuild.cli.main import main

if __name__ == "__main__":
    main()
