"""The version: of the wheel (both eras ask here) and in torch/version.py.

Each build runs this, so it imports little: pathlib and subprocess took a third of its time.
"""

import argparse
import os

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
UNKNOWN = "Unknown"


def git_sha() -> str:
    """The commit of this tree. A folder somewhere inside another repository has none."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return UNKNOWN
    import subprocess

    try:
        command = ["git", "-C", ROOT, "rev-parse", "HEAD"]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def torch_version() -> str:
    version = os.environ.get("PYTORCH_BUILD_VERSION", "")
    number = os.environ.get("PYTORCH_BUILD_NUMBER", "")
    if bool(version) != bool(number):
        raise SystemExit("set both PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER, or neither")
    if version:
        return f"{version}.post{number}" if int(number) > 1 else version
    base = read(os.path.join(ROOT, "version.txt")).strip()
    sha = git_sha()
    return base if sha == UNKNOWN else f"{base}+git{sha[:7]}"


def dynamic_metadata(settings: object, project: object) -> dict[str, str]:
    """scikit-build-core's question; pyproject.toml names this module as the provider."""
    return {"version": torch_version()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--cuda", help="the CUDA version built with")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    text = (
        "# Written by tools/generate_torch_version.py. Do not edit.\n"
        f"__version__ = {torch_version()!r}\n"
        f"debug = {args.debug!r}\n"
        f"cuda = {args.cuda!r}\n"
        f"git_version = {git_sha()!r}\n"
        "hip = None\n"
    )
    if not os.path.exists(args.output) or read(args.output) != text:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
