"""The pictures of pages that are not part of a report."""
