"""Background work on a store: each kind says in its header what it may delete and when."""
