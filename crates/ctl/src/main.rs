//! ctl

fn main() {}
