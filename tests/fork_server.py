"""A program that runs the installed script ``symrelu`` in processes of its own, without a start of Python each.

It imports the libraries once, and forks for each run. The child goes on as the generated script does: it loads
the entry point from the metadata of the installed package, and calls it. The
command line itself is imported by the child, with its own environment, folder, streams and limits. Only the
very end differs: modules are not taken apart, which would take seconds.

No thread may run before a fork, so that nothing is computed here and BLAS has one thread.
"""

import array
import atexit
import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from importlib.metadata import entry_points

LARGEST_REQUEST = 2**20  # bytes
STREAMS = 3
PRELOADED = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "scipy.io",
    "scipy.sparse.linalg",
    "sklearn.metrics",
    "sklearn.utils.estimator_checks",
    "anndata",
    "networkx",
    "numba",
    "rich.progress",
    "typer",
    "symrelu.estimators",
    "symrelu.experiments",
    "symrelu.fit.selection",
    "symrelu.graphs",
)


def preload():
    """Import what the commands need, where it is installed; raise if that has started a thread."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            __import__(name)
    gc.freeze()  # or the first collection of a child would copy all pages
    tasks = len(os.listdir("/proc/self/task"))
    if tasks > 1 or threading.active_count() > 1:
        raise RuntimeError(f"{tasks} threads run, which a fork would not copy.")


def serve(requests):
    """Fork for each request; return it in the child. The parent ends when the other side closes the socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while True:
        message, ancillary, _, _ = requests.recvmsg(LARGEST_REQUEST, socket.CMSG_SPACE(16 * (STREAMS + 1)))
        if not message:
            os._exit(0)
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            keep(descriptors[STREAMS])
            return json.loads(message), list(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def keep(status):
    """Fork once more and return in the child; the parent reports its process id, and how it ended."""
    os.setsid()
    child = os.fork()
    if child == 0:
        return
    os.write(status, f"{child}\n".encode())
    _, ended = os.waitpid(child, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def become(request, descriptors):
    """Take the streams, the folder, the environment and the limits of a request."""
    for stream, descriptor in enumerate(descriptors[:STREAMS]):
        os.dup2(descriptor, stream)
    for descriptor in descriptors:
        os.close(descriptor)
    # Objects of the parent believe that they write to its files.
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [request["script"], *request["arguments"]]
    if request["limits"]:
        set_limits(request["limits"])
    if request["obeys_permissions"]:
        drop_capabilities()


def set_limits(limits):
    """Set limits of the operating system; that of memory is what may be used in addition."""
    import resource

    for name, value in limits.items():
        if name == "RLIMIT_AS":
            with open("/proc/self/statm") as pages:
                value += int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(getattr(resource, name), (value, value))


def drop_capabilities():
    """Let the permissions of files hold for root too."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if os.geteuid() == 0 and libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def code_of(main):
    """Call the entry point as the generated script does; return the exit code that Python would give."""
    try:
        sys.exit(main())
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)  # noqa: T201
    except BaseException:
        traceback.print_exc()
    return 1


def end(code):
    """End without taking apart all modules, which would copy the memory of the parent."""
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            code = 120  # as Python does
    os._exit(code)


if __name__ == "__main__":
    preload()
    become(*serve(socket.socket(fileno=int(sys.argv[1]))))
    (entry,) = entry_points(group="console_scripts", name="symrelu")
    end(code_of(entry.load()))
