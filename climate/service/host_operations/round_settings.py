"""What the rounds after hosts have in common: in whose name they move them, and for how long a host is theirs."""

from datetime import timedelta

from climate.domain.policy import Caller

AUTHOR = Caller("climate:rounds", "")

HANDS_ON = timedelta(seconds=60)
"""How long at most a host is one worker's, so that no other one asks the cloud for the same."""
