"""Shared settings of the rounds for hosts: the author of their facts, and the duration of their claims."""

from datetime import timedelta

from climate.domain.policy import Caller

AUTHOR = Caller("climate:rounds", "")

HOST_CLAIM_SECONDS = timedelta(seconds=60)
"""Maximum time for which one worker claims a host, so that no other one sends the same requests to the cloud."""
