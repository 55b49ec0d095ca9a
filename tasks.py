"""The Invoke collection of the package, nothing else: `invoke build --source ~/pytorch`."""

from torchbuild_tasks import namespace

__all__ = ["namespace"]
