//! Conditions, and how they change: the time of transition moves only with the status.

use serde::{Deserialize, Serialize};

use super::Extra;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
    /// Of somebody else's condition: the API takes any text.
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: ConditionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub last_transition_time: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Condition {
    pub fn new(kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> Condition {
        Condition {
            kind: kind.to_owned(),
            status: if holds { ConditionStatus::True } else { ConditionStatus::False },
            observed_generation: None,
            last_transition_time: String::new(),
            reason: reason.to_owned(),
            message: message.into(),
            extra: Extra::new(),
        }
    }

    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

pub fn find_condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Puts the condition in its place. One that says nothing new stays as it is, so that it causes no write.
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition, now: &str) {
    let Some(old) = conditions.iter_mut().find(|condition| condition.kind == new.kind) else {
        new.last_transition_time = now.to_owned();
        conditions.push(new);
        return;
    };
    let same_status = old.status == new.status && !old.last_transition_time.is_empty();
    new.last_transition_time = if same_status { old.last_transition_time.clone() } else { now.to_owned() };
    new.extra = std::mem::take(&mut old.extra);
    *old = new;
}
