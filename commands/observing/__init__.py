"""What is remembered of the commands that ran: counts, times, the slow ones, latency spikes.

    calls.py      counts and times a command      histogram.py  durations in buckets
    slow_log.py   the slowest calls               redaction.py  words without passwords
    latency.py    spikes of named events          memory.py     what the memory is used for
    advice.py     what LATENCY DOCTOR and MEMORY DOCTOR say of them

Plain data, written by the server as commands run and read by handlers.
"""
