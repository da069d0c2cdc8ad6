"""Data on its way out of a dataset and into one: Parquet, CSV, NDJSON, and tables for RocksDB.

What works here runs in processes of its own, beside the server. pyarrow and fsspec are imported
here and nowhere else, where they are needed; the server has no use for them.
"""
