"""The installed script ``symrelu``, run as a process of its own."""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(sysconfig.get_path("scripts")) / ("symrelu.exe" if sys.platform == "win32" else "symrelu")
SERVER = Path(__file__).with_name("fork_server.py")
HAS_FORK = sys.platform == "linux"  # elsewhere libraries may not be used after a fork
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
NO_THREADS = ONE_THREAD | {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # that of pyarrow
SECONDS = 120


class Ended(NamedTuple):
    """How a run ended: its exit code, negative for a signal, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def found(self):
        """What ``--json`` printed, and nothing else."""
        return json.loads(self.out)

    @property
    def message(self):
        """What is on stderr, on one line."""
        return " ".join(self.err.split())


class Running:
    """A run that was started by a :class:`ForkServer`."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = os.fdopen(status), out, os.fdopen(err, "rb")
        self.pid = int(self.status.readline())

    def kill(self, number):
        os.kill(self.pid, number)

    def wait(self):
        with self.status, self.out, self.err:
            err = self.err.read().decode()
            code = int(self.status.readline())
            self.out.seek(0)
            return Ended(code, self.out.read().decode(), err)


class ForkServer:
    """Run the script by forking a process that has imported the libraries."""

    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, SERVER, str(theirs.fileno())]
            environment = os.environ | NO_THREADS
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)

    def close(self):
        self.socket.close()
        self.process.wait(timeout=SECONDS)

    def start(
        self, *arguments, folder, stdout=None, stderr=None, limits=None, obeys_permissions=False, **environment
    ):
        """Start a run.

        The streams may be descriptors, and the limits are those of ``resource``. If the tests run as root, the
        permissions of files hold only if they are to be obeyed.
        """
        out = tempfile.TemporaryFile()  # noqa: SIM115 (Running closes it)
        (reader, writer), (err, messages) = os.pipe(), os.pipe()  # a pipe has no limit of size
        request = {
            "script": str(SCRIPT),
            "arguments": list(map(str, arguments)),
            "folder": str(folder),
            "environment": run_environment(environment),
            "limits": limits or {},
            "obeys_permissions": obeys_permissions,
        }
        with open(os.devnull) as nothing:
            streams = [
                nothing.fileno(),
                out.fileno() if stdout is None else stdout,
                messages if stderr is None else stderr,
            ]
            socket.send_fds(self.socket, [json.dumps(request).encode()], [*streams, writer])
        os.close(writer)
        os.close(messages)
        return Running(reader, out, err)

    def run(self, *arguments, **how):
        return self.start(*arguments, **how).wait()


class PlainProcesses:
    """Run the script by starting it, for systems without a fork server and for comparison with it."""

    def run(self, *arguments, folder, stdout=None, **environment):
        done = subprocess.run(
            [SCRIPT, *map(str, arguments)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            env=run_environment(environment),
            timeout=SECONDS,
        )
        return Ended(done.returncode, (done.stdout or b"").decode(), done.stderr.decode())

    def close(self):
        pass


def run_environment(changes):
    """Return the environment of a run: that of the tests, without a terminal's width, and with changes."""
    environment = os.environ | ONE_THREAD | {"PYTHONUTF8": "1"} | changes
    return {name: value for name, value in environment.items() if name != "COLUMNS" or name in changes}


def new_server():
    """Return what runs the script on this system."""
    return ForkServer() if HAS_FORK else PlainProcesses()
