"""Work in several threads that take turns after a microsecond, so that a race shows."""

import sys
import threading


def run_in_threads(work, count=8):
    """Call `work(i)` in each of `count` threads, all begun together; raise the first exception of one."""
    start, raised, before = threading.Barrier(count), [], sys.getswitchinterval()

    def call(i):
        try:
            start.wait()
            work(i)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    if raised:
        raise raised[0]
