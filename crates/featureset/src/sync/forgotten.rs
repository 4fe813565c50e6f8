//! Acknowledgements of those who are long gone: a program that starts under another name leaves its old one behind, for ever if nobody
//! takes it away.

use super::{World, Write};

/// So long after an acknowledgement has ended, nobody comes back under its name and wonders.
const KEEP_SECONDS: i64 = 24 * 3600;

pub(crate) fn decide(world: &World<'_>) -> Vec<Write> {
    let long_gone = world.acks.iter().filter(|ack| !ack.is_alive(world.now.0.saturating_sub(KEEP_SECONDS)));
    long_gone.map(|ack| Write::ForgetAck(ack.clone())).collect()
}
