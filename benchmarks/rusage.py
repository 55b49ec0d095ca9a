"""A compiler launcher that notes what each compile costs: `python -IS rusage.py LOG COMMAND…`.

One line of JSON a compile: the object, user and system seconds, peak memory of the largest
process in MiB. Only the standard library, and little of it: it runs once for every file.
"""

import os
import sys


def main(log: str, argv: list[str]) -> int:
    """Run the command and append its cost; a compile that failed is noted with its exit status."""
    child = os.posix_spawnp(argv[0], argv, os.environ)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    made = argv[argv.index("-o") + 1] if "-o" in argv else ""
    line = (
        f'{{"object": "{made}", "user": {used.ru_utime:.3f}, "system": {used.ru_stime:.3f}, '
        f'"memory": {used.ru_maxrss / 1024:.0f}, "code": {code}}}\n'
    )
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line.encode())
    os.close(file)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
