"""Parse → call → print: the only room that prints, reads argv or exits."""
