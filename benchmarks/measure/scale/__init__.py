"""The scale from the pixels: fitted, and tested on what it was not fitted on."""
