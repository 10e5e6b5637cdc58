"""Files to a repository, in one commit."""

from __future__ import annotations

from collections.abc import Mapping

from seunet.errors import InputError
from seunet.hub.client import api, listing, one_line, refuse_code
from seunet.hub.repository import Repository


def push_files(
    repository: Repository,
    files: Mapping[str, bytes],
    *,
    instead_of: tuple[str, ...] = (),
    unless_there: tuple[str, ...] = (),
    message: str,
    private: bool = False,
    token: str | None = None,
) -> Repository:
    """Commit `files` to the main branch of a repository, which is made if there is none: the repository at that commit.

    Args:
        instead_of: files that are removed where they are there and not among the new ones.
        unless_there: files that are left as they are where they are there.
        private: whether a new repository is.
    """
    if repository.revision is not None:
        raise InputError(f"{repository}: a push goes to the main branch; leave out @{repository.revision}")
    hub = api()
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    # The listing is asked for first, without repeating: a missing network is said within seconds.
    found = listing(repository, token)
    if found is not None:
        refuse_code(found)
    there = {} if found is None else found.files
    with one_line(repository):
        if found is None:
            hub.create_repo(repository.name, private=private, token=token)
        added = (name for name in files if not (name in unless_there and name in there))
        removed = (name for name in instead_of if name in there and name not in files)
        commit = hub.create_commit(
            repository.name,
            [
                *(CommitOperationAdd(name, files[name]) for name in added),
                *(CommitOperationDelete(name) for name in removed),
            ],
            commit_message=message,
            token=token,
        )
    return Repository(repository.name, commit.oid)
