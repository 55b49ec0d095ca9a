"""Whether a program can listen somewhere: asked before it is started, for its own answer is a panic."""

from __future__ import annotations

import errno
import socket
import sys


def why_not(host: str, port: int) -> str:
    """ "" when one can listen there, else why not, in a few words."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            if sys.platform != "win32":  # there it would take the port away from whoever has it
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "another program listens there"
        if error.errno == errno.EADDRNOTAVAIL:
            return "this machine has no such address"
        if error.errno == errno.EACCES:
            return "this user may not listen there (ports below 1024 are root's)"
        return error.strerror or str(error)
    return ""
