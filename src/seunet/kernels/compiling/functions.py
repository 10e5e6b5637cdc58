"""What Numba compiles: plain loops, kept on disk as Numba packs them, and the workers of the kernels."""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import llvmlite
import numba
from numba import types
from numba.core import compiler, serialize
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary

from seunet.kernels.compiling.files import CompiledFiles, folder_for

_packed: Any = serialize.dumps
_rebuilt: Any = compiler.CompileResult._rebuild
_pointer_to: Any = types.CPointer
_JOB: Final = (_pointer_to(types.intp),), types.void


def kept_function(function: Any) -> Any:
    """Numba's function, which is kept on disk."""
    made: Any = numba.njit(nogil=True, error_model="numpy")(function)
    made._cache = KeptFunction(function)
    return made


def jit(function: Any) -> Any:
    """What the workers call: part of their code, and nothing that Python could call."""
    return numba.njit(nogil=True, error_model="numpy", pipeline_class=_PartOfWorkers)(function)


def worker_function(function: Any) -> Any:
    """`function(job)` compiled for C at once; `workers.py` keeps it."""
    made: Any = CFunc(function, _JOB, locals={}, options={"error_model": "numpy"})
    made.compile()
    return made


class _PartOfWorkers(compiler.Compiler):
    """Without what Numba adds to call a function from Python, and without machine code of its own."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        state = self.state
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = _OnlyLinked(state.targetctx.codegen(), "part of a worker")


class _OnlyLinked(JITCodeLibrary):
    """Code as it was written down: it is optimised and becomes machine code within the worker that it is linked into.

    Numba would do both here and there again, which took as long as all the rest.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Numba asks for it to set what the machine code would need of Python: there is none."""
        return SimpleNamespace(set_env=lambda _name, _environment: None)


class KeptFunction:
    """What Numba asks for a function before it compiles it (`load_overload`), and hands it to after (`save_overload`).

    In place of Numba's own, which has one index for all signatures of a function (two processes that write at once can
    make it name the code of another one), compiles in every process, and lets an error of the disk end the call.
    """

    def __init__(self, function: Any) -> None:
        source = Path(inspect.getfile(function))
        self._files = CompiledFiles(folder_for(source), f"{source.stem}.{function.__qualname__}")
        versions = numba.__version__, llvmlite.__version__, sys.version
        self._made_from = hashlib.sha256(source.read_bytes()).hexdigest(), *versions
        self._lock: int | None = None

    @property
    def cache_path(self) -> str | None:
        """For Numba's statistics."""
        return None if self._files.folder is None else str(self._files.folder)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What is on disk, also where another process has just compiled it; None, and the lock, where it is not."""
        context.refresh()
        found = self._read(signature, context)
        if found is None and self._lock is None:
            self._lock = self._files.lock()
            found = self._read(signature, context)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep it if possible, and let others go on."""
        try:
            self._files.save(_packed(made._reduce()), *self._key(signature, made.codegen))
        finally:
            self._unlock()

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self._made_from

    def _read(self, signature: Any, context: Any) -> Any:
        code = self._files.load(*self._key(signature, context.codegen()))
        try:
            return None if code is None else _rebuilt(context, *pickle.loads(code))  # noqa: S301
        except Exception:  # whatever a file gives that was made by something else
            return None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
