//! Feature gates with versions, stages and life-cycle checks.
