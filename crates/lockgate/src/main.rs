//! lockgate

fn main() {}
