"""Worker processes ignore Ctrl-C; the process that started them answers as before."""

import signal
import subprocess
import sys
import threading

import pytest

from symrelu.kernels.interrupts import ctrl_c_ignored

PRINT_HANDLER = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"


def test_processes_started_inside_ignore_ctrl_c():
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_ignored():
        started = subprocess.run([sys.executable, "-c", PRINT_HANDLER], capture_output=True, text=True)
    assert started.stdout.strip() == "True"
    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_comes_back_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), ctrl_c_ignored():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_it_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with ctrl_c_ignored():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
