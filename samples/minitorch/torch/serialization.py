"""torch.save and torch.load: pickles that hold tensors, plain containers and nothing else."""

import contextlib
import os
import pickle


class _Unpickler(pickle.Unpickler):
    """A pickle may call anything; this one may call what makes a tensor."""

    def find_class(self, module, name):
        if (module, name) == ("torch._C", "tensor"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"torch.load does not load {module}.{name}")


def save(obj, f) -> None:
    with _opened(f, "wb") as file:
        pickle.dump(obj, file)


def load(f):
    with _opened(f, "rb") as file:
        return _Unpickler(file).load()


def _opened(f, mode):
    """A path opened, or a file object as it is and left open."""
    return open(f, mode) if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(f)
