//! utl

fn main() {}
