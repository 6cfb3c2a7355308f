"""Types of the JSON answers that commands read: keys as the server writes them. Commands import them for mypy alone."""
