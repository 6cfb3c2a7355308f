"""Preemptible leases: they get hosts that nobody was promised, and give way to ordinary leases."""
