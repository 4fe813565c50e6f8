//! Drives raft: persist, send, apply in order.
