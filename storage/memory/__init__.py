"""An ordered store in memory, for tests and for data that may go with the process."""
