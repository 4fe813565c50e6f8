//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

mod apply;
mod builtins;
mod clients;
mod common;
mod connections;
mod conversion;
mod converted_managers;
mod credentials;
mod definition_end;
mod e2e;
mod feature_sets;
mod flip;
mod frozen;
mod gated_conversion;
mod gates;
mod health;
mod kube;
mod kubectl;
mod kubectl_policies;
mod namespace_end;
mod one_way;
mod onefile;
mod owned;
mod paths;
mod policies;
mod races;
mod refuse;
mod requests;
mod restored;
mod rules;
mod scale;
mod strict;
mod suite;
mod watches;
