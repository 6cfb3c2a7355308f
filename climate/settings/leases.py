"""Settings of leases and their events."""

from dataclasses import dataclass

from climate.settings.setting_fields import secret, setting


@dataclass(frozen=True)
class LeaseSettings:
    """Limits, notifications, approval, the waiting list and events of leases."""

    limit_period_days: int = setting(30, "Days over which the host-hours of a project are added up.", 1, 3650)
    notify_url: str = setting("", "URL to which notifications are posted, as Standard Webhooks; when empty, none are.")
    notify_secret: str = secret("Key that signs notifications: whsec_ and 24 to 64 bytes in base64.")
    notify_private: bool = setting(False, "Allow CLIMATE_NOTIFY_URL to point to this machine or a private network.")
    notify_seconds: float = setting(10.0, "Timeout of posting one notification, in seconds.", 0.1, 30)
    notify_tries: int = setting(15, "Attempts to post one notification, over some hours.", 1, 100)
    smtp_url: str = secret(
        "URL of the server that sends mail: smtp://, smtp+starttls:// or smtps://, [USER:PASSWORD@]HOST[:PORT]; "
        "when empty, no mail is sent."
    )
    mail_from: str = setting("", "Address of the sender of mail; CLIMATE_SMTP_URL needs it.")
    notice_days: int = setting(90, "Days for which notifications are kept.", 1, 3650)
    archive_dir: str = setting(
        "", "Folder of the archives of leases, one for all machines; when empty, `archives` below CLIMATE_HOME."
    )
    enforcement_url: str = setting(
        "", "Approval service, which is called before a lease is created or updated, and at its end; when empty, none."
    )
    enforcement_token: str = secret("Token for CLIMATE_ENFORCEMENT_URL, sent as X-Auth-Token.")
    enforcement_seconds: float = setting(5.0, "Timeout of a call of the approval service, in seconds.", 0.1, 30)
    enforcement_open: bool = setting(False, "Grant leases if the approval service gives no usable answer.")
    minutes_before_end: int = setting(60, "Default time of before_end_lease before the end, in minutes; 0: no event.")
    resource_plugins: str = setting(
        "", "Resource types whose plugins are loaded, by commas; when empty, all installed ones."
    )
    max_lease_days: int = setting(730, "Longest lease, in days.", 1, 36500)
    series_occurrences: int = setting(52, "Maximum number of leases in a series.", 1, 1000)
    hold_seconds: int = setting(600, "Longest hold of a lease, in seconds; 0: holds are refused.", 0, 86400)
    holds_per_project: int = setting(
        10,
        "Default number of leases that a project may hold at once; -1: any number. Administrators have no limit.",
        -1,
    )
    waiting_per_project: int = setting(
        10,
        "Default number of leases of a project in the waiting list; -1: any number. Administrators have no limit.",
        -1,
    )
    waiting_patience: int = setting(
        3600,
        "Wait after which a lease of the waiting list is protected from those behind it, in seconds; -1: never.",
        -1,
        2678400,
    )
    waiting_promises: int = setting(
        1, "Leases of the waiting list that have been promised a later period at once.", 0, 1000
    )
    waiting_share_days: int = setting(
        7, "Days whose host hours decide the order of projects in the waiting list; 0: the age alone decides.", 0, 366
    )
    on_end: str = setting("create_image, delete", "Default actions at the end of a virtual:instance reservation.")
    poll_seconds: float = setting(1.0, "Longest sleep of the poller, in seconds.", 0.05, 60)
    pools_seconds: float = setting(
        5.0,
        "Longest time between two rounds over hosts that are recycled, cleaned or failed, in seconds.",
        0.05,
        60,
    )
    claims_ahead: int = setting(
        100, "Claimed events that have not started, for each queue of the workers; further events are claimed later.", 2
    )
    claim_seconds: float = setting(
        15.0, "Seconds without a heartbeat after which a worker loses its claim of an event.", 1
    )
    step_seconds: float = setting(300.0, "Timeout of one run of an event, in seconds.", 1)
    wait_seconds: float = setting(600.0, "Longest time that an event waits for the cloud, in seconds.", 1)
