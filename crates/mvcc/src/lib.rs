//! Revisions, key index, ranges, transactions, watches, compaction, hashes.
