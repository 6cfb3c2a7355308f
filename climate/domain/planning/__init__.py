"""Planning: holds, series, the waiting list and preemption."""
