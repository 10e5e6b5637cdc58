"""The client of the hub, huggingface_hub, and its errors in one line each.

It is an extra (`seunet[hub]`) and slow to import: loaded here, when a repository is named.  Where files are kept
(HF_HOME, HF_HUB_CACHE), whether the network may be used (HF_HUB_OFFLINE), the address (HF_ENDPOINT) and who asks
(HF_TOKEN, `hf auth login`) is its business.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from seunet.errors import InputError, ModelFileError, SeunetError, StorageError
from seunet.extras import needed
from seunet.hub.repository import Repository

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ANSWER_SECONDS: Final = 10
"""How long the hub may take to say what is in a repository."""
RUNS_CODE: Final = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".dill", ".mar")
"""Endings of files that are unpickled by who loads them, which runs what stands in them."""


class UnreachableError(InputError):
    """The hub does not answer, or must not be asked; what was fetched before may do."""


class Listed(NamedTuple):
    """A file of a repository, as the hub lists it."""

    size_bytes: int
    hash: str
    """sha256 of a large file; of a small one the sha1 that git gives to its content."""


class Listing(NamedTuple):
    """A repository at one commit."""

    repository: Repository
    files: dict[str, Listed]

    def size_bytes(self, name: str) -> int:
        return self.files[name].size_bytes if name in self.files else 0


def api() -> HfApi:
    """The client, or one line that says how to get it."""
    needed("huggingface_hub")
    from huggingface_hub import HfApi

    return HfApi(library_name="seunet")


def listing(repository: Repository, token: str | None = None) -> Listing | None:
    """What a repository holds at its revision, and which commit that is; None where there is no such repository."""
    hub = api()
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    with one_line(repository):
        try:
            found = hub.model_info(
                repository.name, revision=repository.revision, timeout=ANSWER_SECONDS, files_metadata=True, token=token
            )
        except GatedRepoError:
            raise
        except RepositoryNotFoundError:
            return None
    if found.sha is None:
        raise ModelFileError(f"{repository}: the hub names no commit; is HF_ENDPOINT the address of a hub?")
    files = {
        file.rfilename: Listed(file.size or 0, file.blob_id or "" if file.lfs is None else file.lfs.sha256)
        for file in found.siblings or ()
    }
    return Listing(Repository(repository.name, found.sha), files)


def refuse_code(listing: Listing) -> None:
    """A repository with files that run code when they are loaded is none of ours: nothing of it is fetched."""
    found = next((name for name in sorted(listing.files) if name.lower().endswith(RUNS_CODE)), None)
    if found is not None:
        raise ModelFileError(
            f"{listing.repository}: holds {found[:80]}, which runs code when it is loaded; models of seunet are "
            "safetensors and JSON only"
        )


@contextmanager
def one_line(repository: Repository) -> Iterator[None]:
    """What the client raises in the block, in one line: what, where, remedy."""
    from huggingface_hub.errors import (  # type: ignore[attr-defined]
        GatedRepoError,
        HfHubHTTPError,
        HTTPError,  # of the transport below: no name, no route, no answer
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RemoteEntryNotFoundError,
        RevisionNotFoundError,
        XetDownloadError,
    )

    try:
        yield
    except (SeunetError, RemoteEntryNotFoundError):
        raise
    except OfflineModeIsEnabled:
        offline = "HF_HUB_OFFLINE is set and it was not fetched before; unset it once"
        raise UnreachableError(f"{repository}: {offline}") from None
    except GatedRepoError:
        raise ModelFileError(f"{repository}: its owner grants access; ask there, then `hf auth login`") from None
    except RevisionNotFoundError:
        raise ModelFileError(f"{repository}: has no such revision; see its commits and tags on the hub") from None
    except HfHubHTTPError as error:
        raise _answered(repository, error.response.status_code) from None
    except (HTTPError, ConnectionError, LocalEntryNotFoundError, XetDownloadError, RuntimeError) as error:
        raise UnreachableError(f"{repository}: no answer from the hub ({_first(error)}); check the network") from None
    except OSError as error:
        if "Consistency check failed" in str(error):
            raise ModelFileError(f"{repository}: a file arrives truncated; try again, or on another network") from None
        cache = "set HF_HOME to a folder that can be written"
        raise StorageError(f"{repository}: cannot be kept ({error.strerror or _first(error)}); {cache}") from None
    except ValueError as error:
        raise InputError(f"{repository}: refused by the hub ({_first(error)}); correct it") from None


def _answered(repository: Repository, status: int) -> InputError:
    if status in (401, 403):
        return InputError(f"{repository}: you may not ({status}); `hf auth login`, or check its owner")
    return UnreachableError(f"{repository}: the hub answers {status}; try again later")


def _first(error: Exception) -> str:
    """Of the client's many lines the first, of what was the cause."""
    cause = error.__cause__ or error
    return str(cause).split("\n")[0].strip(" .:")[:100] or type(cause).__name__
