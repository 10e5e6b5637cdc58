"""The documentation as a site: the repository's own pages, the tutorials with what they printed, and the reference.

    python -m tools.docs_site        # writes build/site; `make site`

The pages are gathered in build/pages under the paths that they have in the repository, so links that work on a
repository page work on the site.  mkdocs.yml says how it looks.  Why so: docs/decisions/0090-the-site.md.
"""
