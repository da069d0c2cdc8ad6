"""The ordered store on disk: RocksDB through rocksdict, behind one guard module."""
