"""How the viewer fares with large slides."""
