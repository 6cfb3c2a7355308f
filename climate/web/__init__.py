"""Web server: workers of gunicorn and the framing of requests."""
