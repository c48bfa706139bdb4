"""Available memory, and batches of work that fit into scikit-learn's ``working_memory``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from symrelu.kernels.threads import slices

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None


def working_memory() -> float:
    """Return the number of bytes that temporary arrays may take."""
    import sklearn  # not at the top: it takes longer to import than all the rest

    return float(sklearn.get_config()["working_memory"] * 2**20)


def batches(count: int, bytes_each: int) -> list[slice]:
    """Return slices of ``range(count)`` that fit into the working memory, each with at least one item."""
    return slices(count, max(1, int(working_memory() // bytes_each)))


def rows_per_worker(bytes_each: int, most: int) -> tuple[int, int]:
    """Return how many rows a worker may hold at once, up to ``most``, and how many workers have room to do so.

    The first number does not depend on the number of threads: BLAS may round a row differently in a larger
    block.
    """
    fitting = working_memory() / bytes_each
    rows = int(min(max(1, fitting), most))
    return rows, max(1, int(fitting / rows))


def available_memory() -> int | None:
    """Return how many bytes this process can still allocate, or None if the system does not report it.

    The smallest of what the machine has, what the control groups of a container or a batch system leave, and
    what ``ulimit -v`` leaves.
    """
    limits = [_free_on_the_machine(), room_in_control_groups(), room_in_address_space()]
    return min((limit for limit in limits if limit is not None), default=None)


def _free_on_the_machine() -> int | None:
    # Linux reports what can be allocated without swapping; elsewhere the total is the best bound there is.
    with suppress(OSError, StopIteration, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def room_in_control_groups(root: Path = Path("/")) -> int | None:
    """Return the smallest room in the control groups of this process, or None if none has a limit.

    Parameters
    ----------
    root : Path, default="/"
        Where ``proc`` and ``sys`` are.

    Returns
    -------
    room : int or None
        Bytes. Pages of files that the kernel can drop count as free.
    """
    rooms = []
    for files, folder in _control_groups(root):
        with suppress(OSError, ValueError, IndexError):  # "max" is no number: there is no limit
            limit, used = (int((folder / name).read_text("ascii")) for name in files[:2])
            rooms.append(max(0, limit - max(0, used - _droppable(folder, files[2]))))
    return min(rooms, default=None)


# The files with the limit and the use, and the entry of memory.stat with pages that can be dropped.
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def _control_groups(root: Path) -> Iterator[tuple[tuple[str, str, str], Path]]:
    """Yield the folders of the groups of this process and of all groups that contain them."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        top = root / "sys/fs/cgroup"
        if number == "0" and not controllers:
            files = _VERSION_2
        elif "memory" in controllers.split(","):
            files, top = _VERSION_1, top / "memory"
        else:
            continue
        # In a container the path may be that of the host, and the limits are those of the top.
        folder = top / path.lstrip("/")
        yield from ((files, group) for group in (folder, *folder.parents) if group.is_relative_to(top))


def _droppable(folder: Path, entry: str) -> int:
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text("ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == entry:
                return int(count)
    return 0


def room_in_address_space() -> int | None:
    """Return what ``ulimit -v`` leaves in bytes, or None if there is no such limit."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else max(0, limit - _address_space())


def limit_to_available_memory() -> None:
    """Let this process fail to allocate more than is available now, instead of being killed by the system."""
    room = available_memory()
    if resource is not None and room is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        with suppress(OSError, ValueError):  # systems without such a limit
            resource.setrlimit(resource.RLIMIT_AS, (_address_space() + room, hard))


def _address_space() -> int:
    """Return the size of this process in bytes, or 0 if the system does not report it."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def in_words(count: int) -> str:
    """Return a number of bytes with a unit."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
