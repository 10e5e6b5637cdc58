"""Images and slides in; labels, polygons and previews out, in bounded memory."""
