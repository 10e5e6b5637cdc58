"""Run a C function on a team of threads: the one that torch already has.

A thread pool of our own loses: after each parallel operation the OpenMP threads of torch go on spinning for some
milliseconds in wait of the next one, on the core that the pool needs (benchmarks/measure/network/parts.py).
Numba's own layers have the same rival, and its default one aborts the process when two Python threads enter it at
once.  So the function is handed to `GOMP_parallel` of the very OpenMP runtime that torch has loaded: same threads, no
rivals, and a team for each calling Python thread.  Where that runtime has another interface (macOS, Windows), a small
pool is used.

A forked child has none of its parent's OpenMP threads, and a parallel region there would wait for them for ever, in
any operation of torch as well as here.  So the child is set to one thread, as the workers of torch's DataLoader are.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import torch

from seunet.kernels.compiling.workers import worker_address

_state = {"forked": False}


def _continue_alone() -> None:
    _state["forked"] = True
    _pool.cache_clear()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_continue_alone)


def team_size() -> int:
    """How many threads a parallel operation may use: torch's own setting, one in a forked child."""
    return 1 if _state["forked"] else torch.get_num_threads()


@cache
def worker(loops: str, dtype: torch.dtype, *options: bool) -> Callable[[int], None]:
    """The worker of the module `loops` for this type, callable with the address of a job; compiled or read once."""
    address = worker_address(loops, "float32" if dtype == torch.float32 else "float64", *options)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


def run_job(
    function: Callable[[int], None], job: Mapping[int, int], length: int, workers: int, behind: Sequence[int] = ()
) -> None:
    """Hand a job to `workers` threads: `length` integers, 0 where `job` has none, and those that follow `behind` it."""
    vector = np.zeros(length + len(behind), dtype=np.intp)
    vector[list(job)] = list(job.values())
    vector[length:] = behind
    run(function, vector.ctypes.data, workers)


def run(function: Callable[[int], None], argument: int, threads: int) -> None:
    """Call `function(argument)` once on each of `threads` threads and wait for all.

    `function` is a ctypes function that gives up the GIL; `argument` is the address of what the calls share.
    """
    if threads <= 1 or _state["forked"]:
        function(argument)
    elif (parallel := _openmp_parallel()) is not None:
        parallel(ctypes.cast(function, ctypes.c_void_p), argument, threads, 0)  # type: ignore[arg-type]
    else:
        others = [_pool().submit(function, argument) for _ in range(threads - 1)]
        function(argument)
        for other in others:
            other.result()


@cache
def _openmp_parallel() -> Callable[[ctypes.c_void_p, int, int, int], None] | None:
    """`GOMP_parallel(function, argument, threads, flags)` of the runtime that torch brought, if it has it."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        function = getattr(ctypes.CDLL(str(path)), "GOMP_parallel", None)
        if function is not None:
            function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            function.restype = None
            return function  # type: ignore[no-any-return]
    return None


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="seunet")
