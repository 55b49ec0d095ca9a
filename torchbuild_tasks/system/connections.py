"""Break the connections of our descendants to a server that hangs, so that they see an error (Linux)."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psutil

_PIDFD_GETFD: Final = 438  # Linux 5.6; this number on every architecture but alpha (include/uapi/asm-generic)


def break_connections(host: str, port: int, *pids: int) -> int:
    """Shut down each connection that our descendants, or `pids`, have to this server; return how many.

    Their copy of the socket is borrowed by pidfd_getfd(2), which the kernel allows to an ancestor of the same
    user, and to others where Yama's ptrace_scope is 0. Where it does not, nothing happens.
    """
    import psutil

    with contextlib.suppress(OSError, psutil.Error):
        there = {_address(str(info[4][0])) for info in socket.getaddrinfo(host, port)}
        processes = {*psutil.Process().children(recursive=True), *map(psutil.Process, pids)}
        return sum(
            _shut_down(process.pid, each.fd)
            for process in processes
            for each in _connections(process)
            if each.raddr and each.raddr.port == port and _address(each.raddr.ip) in there
        )
    return 0


def list_peers(pid: int) -> tuple[tuple[str, int], ...]:
    """Return the addresses that a process is connected to; none where that is not known."""
    import psutil

    with contextlib.suppress(psutil.Error):
        found = (each for each in _connections(psutil.Process(pid)) if each.raddr)
        return tuple(sorted({(_address(each.raddr.ip), each.raddr.port) for each in found}))
    return ()


def _connections(process: psutil.Process) -> list[Any]:
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        return list(process.net_connections("tcp"))
    return []


def _address(text: str) -> str:
    """Return an IPv4-mapped IPv6 address, as gRPC uses it, as IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)


def _shut_down(pid: int, descriptor: int) -> bool:
    with contextlib.suppress(OSError):
        of_process = os.pidfd_open(pid)
        try:
            borrowed = ctypes.CDLL(None).syscall(_PIDFD_GETFD, of_process, descriptor, 0)
        finally:
            os.close(of_process)
        if borrowed >= 0:
            with socket.socket(fileno=borrowed) as connection:
                connection.shutdown(socket.SHUT_RDWR)
            return True
    return False
