//! Leases: grant, revoke, renew, expiry, checkpoints.
