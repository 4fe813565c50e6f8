//! etcd's write-ahead log: segments, records, repair.
