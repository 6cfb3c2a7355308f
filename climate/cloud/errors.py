"""Errors of a cloud: what the engine does next depends on their class."""


class CloudError(Exception):
    """The cloud could not do this now; a retry may succeed."""


class Refused(CloudError):
    """The cloud will never do this; a retry is useless."""


class Fenced(Exception):
    """A later claim has already worked on this object, so the caller has lost its event."""


class NotYet(Exception):
    """The request is under way in the cloud; the caller asks again later. It counts as no attempt."""


class InUse(Exception):
    """The request could not run together with others without waiting; the caller sends it alone."""


Trouble = CloudError | NotYet | Fenced | InUse
"""Reason why one of several requests failed."""
