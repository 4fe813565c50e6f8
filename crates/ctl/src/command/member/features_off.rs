//! A new voter has not proposed any cluster feature, so those that were on go off with it: whoever adds it is told.

use std::time::Duration;

use client::{
    Client,
    membershippb::{FeatureGateCause, FeatureGateChange},
    pb::MemberAddResponse,
};

/// The member is in by now, so nobody should wait long for a word about it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says on standard error which features went off, and how that is avoided. Nothing if none did, or if the server
/// does not say, as a real etcd.
pub(super) async fn tell(client: &Client, name: &str, response: &MemberAddResponse) {
    let Some(id) = response.member.as_ref().map(|member| member.id) else { return };
    if let Some(off) = switched_off(client, id).await {
        eprintln!("{}", text(name, &off));
    }
}

/// Asks one endpoint after the other: only the member that answered the addition has surely applied it, and a
/// linearizable question may have to wait for the very member that is to be started.
async fn switched_off(client: &Client, id: u64) -> Option<Vec<String>> {
    for endpoint in client.endpoints() {
        let one = client.only(&endpoint).ok()?.with_timeout(PATIENCE);
        let Ok(mut history) = one.feature_gate_history(0, false).await else { continue };
        while let Ok(Some(changes)) = history.next().await {
            if let Some(change) = changes.iter().find(|change| is_addition(change, id)) {
                return Some(change.before.iter().filter(|name| !change.after.contains(name)).cloned().collect());
            }
        }
    }
    None
}

fn is_addition(change: &FeatureGateChange, id: u64) -> bool {
    change.member_id == id && change.cause() == FeatureGateCause::VoterAdded
}

fn text(name: &str, off: &[String]) -> String {
    let names = off.join(", ");
    let (is, it) = if off.len() == 1 { ("is", "it") } else { ("are", "them") };
    format!(
        "Warning: cluster feature {names} {is} off until member {name} has started and proposes {it} \
         (--cluster-feature-gates).\n\
         A member added with --learner, and promoted once it proposes the same, turns nothing off."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_went_off_and_the_way_around() {
        let one = text("d", &["A".to_owned()]);
        assert!(one.contains("A is off until member d has started and proposes it"), "{one}");
        let two = text("d", &["A".to_owned(), "B".to_owned()]);
        assert!(two.contains("A, B are off") && two.contains("--learner"), "{two}");
    }
}
