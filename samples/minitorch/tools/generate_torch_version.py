"""The version: of the wheel (both eras ask here) and in torch/version.py."""

import argparse
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNKNOWN = "Unknown"


def git_sha() -> str:
    """The commit of this tree. A folder somewhere inside another repository has none."""
    if not (ROOT / ".git").exists():
        return UNKNOWN
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def torch_version() -> str:
    version = os.environ.get("PYTORCH_BUILD_VERSION", "")
    number = os.environ.get("PYTORCH_BUILD_NUMBER", "")
    if bool(version) != bool(number):
        raise SystemExit("set both PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER, or neither")
    if version:
        return f"{version}.post{number}" if int(number) > 1 else version
    base = (ROOT / "version.txt").read_text(encoding="utf-8").strip()
    sha = git_sha()
    return base if sha == UNKNOWN else f"{base}+git{sha[:7]}"


def dynamic_metadata(settings: object, project: object) -> dict[str, str]:
    """scikit-build-core's question; pyproject.toml names this module as the provider."""
    return {"version": torch_version()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--cuda", help="the CUDA version built with")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    text = (
        "# Written by tools/generate_torch_version.py. Do not edit.\n"
        f"__version__ = {torch_version()!r}\n"
        f"debug = {args.debug!r}\n"
        f"cuda = {args.cuda!r}\n"
        f"git_version = {git_sha()!r}\n"
        "hip = None\n"
    )
    if not args.output.exists() or args.output.read_text(encoding="utf-8") != text:
        args.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
