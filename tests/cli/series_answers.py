"""A series as the fake server shows it."""

CLASH = {
    "lease_id": None,
    "name": "training-2030-02-12",
    "start_date": "2030-02-12T10:00:00.000000",
    "end_date": "2030-02-12T12:00:00.000000",
    "fits": False,
    "status": None,
    "reason": "Not enough hosts available",
    "binding": {"name": "hosts", "message": "Too few hosts are free", "reservation": 0},
    "alternatives": [
        {
            "kind": "later",
            "message": "at a later time",
            "offer": {"id": "gAAAA1", "start_date": "2030-02-12T13:00:00.000000"},
        }
    ],
}
SERIES = {
    "id": "01a20ddc-14c0-761c-ac47-0096a41ce3f0",
    "name": "training",
    "rule": "FREQ=WEEKLY;COUNT=2",
    "zone": "Europe/Berlin",
    "start_date": "2030-02-05T10:00:00.000000",
    "leases": 1,
    "occurrences": [
        {
            **CLASH,
            "lease_id": "l1",
            "name": "training-2030-02-05",
            "start_date": "2030-02-05T10:00:00.000000",
            "status": "PENDING",
            "fits": True,
            "reason": None,
            "binding": None,
            "alternatives": [],
        },
        CLASH,
    ],
}
