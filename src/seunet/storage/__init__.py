"""Disk and processes: files that are whole or not there, output folders that are claimed, resumed and swept, journals,
bounded reads, checked tensors, and the sandbox in which hostile files are opened.

May import: the foundations beside the rooms (`errors`, `limits`, `memory`, `progress`).  Begin with `atomic.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.storage.atomic import atomic_folder, atomic_path, write_bytes, write_text
    from seunet.storage.files import read_limited, sha256
    from seunet.storage.jsonl import Journal, rounded, rows
    from seunet.storage.ledger import LEDGER
    from seunet.storage.sandbox import Child
else:
    __getattr__, __dir__ = door(__name__)
