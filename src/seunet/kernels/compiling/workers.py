"""The kernels as C functions void(job), from the machine code on disk; Numba is needed only where there is none.

Loading Numba takes half a second, loading its code a millisecond: a file has the machine code alone, which LLVM links.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm

from seunet.kernels.compiling.files import CompiledFiles, folder_for, warn_once

KERNELS: Final = Path(__file__).parent.parent
COMPILED_FILES: Final = (
    "compiling/functions.py",
    "compiling/workers.py",
    "jobs.py",
    "vectors/simd.py",
    "vectors/arithmetic.py",
    "vectors/code.py",
    "vectors/filter_groups.py",
    "vectors/product_groups.py",
    "loops/filters.py",
    "loops/rows.py",
    "loops/strips.py",
    "loops/jet_gradients.py",
    "loops/jet.py",
    "loops/pooling_gradients.py",
    "loops/pooling.py",
    "loops/batch_norm.py",
)
_WITHOUT_EFFECT: Final = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
_ON_ERRORS: Final = (
    "NRT_Free",
    "numba_do_raise",
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)
"""Functions of Numba that a worker calls where an exception was raised.  The loops raise none."""


def source_digest(folder: Path = KERNELS) -> str:
    """What changes with any source of the compiled loops."""
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in COMPILED_FILES)).hexdigest()


@cache
def worker_address(loops: str, dtype: str, *options: bool) -> int:
    """The address of what `make_worker` of `loops/` compiles for this type; compiled where it is not kept."""
    files, key = _files(loops), (dtype, options, _made_by())
    code = files.load(*key)
    if code is None:
        with files.locked():
            code = files.load(*key)
            if code is None:
                code, missing = _compiled(loops, dtype, options)
                if missing:
                    warn_once(f"without Numba they lack {', '.join(missing)}")
                else:
                    files.save(code, *key)
    return _linked(code)


def worker_is_kept(loops: str, dtype: str, *options: bool) -> bool:
    """Whether `worker_address` will find it compiled."""
    return _files(loops).load(dtype, options, _made_by()) is not None


def _files(loops: str) -> CompiledFiles:
    return CompiledFiles(folder_for(KERNELS / "jobs.py"), f"{loops}_loops")


@cache
def _made_by() -> tuple[Any, ...]:
    """What the machine code depends on beside its options."""
    settings = [(name, value) for name, value in os.environ.items() if name.startswith("NUMBA_")]
    processor = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    versions = version("numba"), llvmlite.__version__, sys.version
    return source_digest(), versions, processor, sorted(one for one in settings if one[0] not in _WITHOUT_EFFECT)


def _compiled(loops: str, dtype: str, options: tuple[bool, ...]) -> tuple[bytes, list[str]]:
    """The name of the C function and its machine code; the functions that it needs and only Numba has."""
    from numba import types

    made = import_module(f"seunet.kernels.loops.{loops}").make_worker(getattr(types, dtype), *options)
    _, _, (code, _) = made._library.serialize_using_object_code()
    declared = [one.name for one in made._library._final_module.functions if one.is_declaration]
    known = [name for name in declared if name.startswith("llvm.") or hasattr(ctypes.pythonapi, name)]
    return made.native_name.encode() + b"\n" + bytes(code), sorted({*declared} - {*known, *_ON_ERRORS})


def _linked(kept: bytes) -> int:
    name, code = kept.split(b"\n", 1)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for function in _ON_ERRORS:
        if llvm.address_of_symbol(function) is None:
            llvm.add_symbol(function, _address_of_abort())
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(name.decode()))


_engines: list[Any] = []
"""The code lives as long as its engine."""


@cache
def _abort() -> Any:
    return ctypes.CFUNCTYPE(None)(os.abort)


def _address_of_abort() -> int:
    return int(ctypes.cast(_abort(), ctypes.c_void_p).value or 0)
