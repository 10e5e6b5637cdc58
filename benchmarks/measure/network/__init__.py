"""Networks and layers: time, memory, equivariance; `make bench` measures what is promised."""
