"""Web server: workers of gunicorn and the framing of requests.

The arbiter of gunicorn imports this package before it forks its workers, which inherit the numbers here.
"""

from climate.web.shared_number import SharedNumber

LAST_REVOCATION = SharedNumber()
"""Random number that stands for the last revocation of tokens by any process of this web server."""
