"""Model repositories on the Hugging Face Hub: their names, what is fetched from them, what is pushed to them.

May import: `storage` and the rooms below.  Begin with `repository.py`, then `fetch.py`.
"""

from typing import TYPE_CHECKING

from seunet.doors import door

if TYPE_CHECKING:
    from seunet.hub.fetch import Wanted, fetch_files
    from seunet.hub.push import push_files
    from seunet.hub.repository import PREFIX, Repository, is_on_hub, parsed
else:
    __getattr__, __dir__ = door(__name__)
