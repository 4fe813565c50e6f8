//! What the tests share; each test uses a part of it.
#![allow(dead_code, reason = "every test file compiles all of it")]

pub mod any_schema;
pub mod generate;
pub mod model;
pub mod script;
