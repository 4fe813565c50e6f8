//! The bbolt file format: pages, buckets, transactions.
