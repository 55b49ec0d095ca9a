"""`python -m torchbuild_tasks`: the same as `torchbuild`."""

from torchbuild_tasks.fronts.main import main

if __name__ == "__main__":
    main()
