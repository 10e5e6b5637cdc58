"""What makes the shipped model, and keeps the logs of published runs."""
