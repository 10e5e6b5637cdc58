"""The rows of RELIABILITY in full: `make reliability`."""
