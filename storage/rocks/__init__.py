"""The ordered store on disk: RocksDB through rocksdict, guarded: see database.py."""
