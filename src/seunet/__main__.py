"""`python -m seunet`, for `torchrun -m seunet train …`."""

from seunet.cli.main import main

if __name__ == "__main__":
    main()
