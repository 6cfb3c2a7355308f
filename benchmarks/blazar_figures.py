"""Figures of peers, measured on a machine with two cores: Blazar 18.0 with MariaDB, services beside it stubbed out.

The figures are constants: the peers are not run here.
"""

BLAZAR = "Blazar 18"

CREATE_MS = {10: 88.0, 1000: 10_100.0}
"""Hosts -> milliseconds of one create below its API: 10 hosts with no reservations, 1,000 hosts with 10,000."""

CREATE_STATEMENTS = {10: 45, 1000: 4025}
"""Hosts -> SQL statements of one create."""

CREATES_PER_SECOND = 4.9
"""With 100 hosts, below its API, at the best number of clients."""

DUE_EVENTS_PER_SECOND = 18.9
LATENESS_MS = 5120.0
"""Median from due to action: it looks every ten seconds."""

DOUBLE_BOOKED = "61 to 98 %"
"""Contested windows in which one host went to more than one lease."""
