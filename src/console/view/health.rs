//! Words for findings.

use crate::console::core::Health;
use crate::memory::findings::Severity;
use crate::memory::{Entity, agreeing};
use crate::ui::{SafeText, StyleRole, figures};

pub(in crate::console) fn severity(of: Severity) -> (&'static str, StyleRole) {
    match of {
        Severity::High => ("high", StyleRole::Bad),
        Severity::Medium => ("medium", StyleRole::Warn),
        Severity::Low => ("low", StyleRole::Muted),
    }
}

/// Formats the count of a kind, `4+` if there may be more.
pub(in crate::console) fn count(health: &Health, kind: &str, count: u64) -> SafeText {
    let more = if health.may_grow(kind) { "+" } else { "" };
    SafeText::join(&[figures::count(count), more.into()], "")
}

pub(in crate::console) fn progress(health: &Health) -> SafeText {
    match (health.done, health.read) {
        (true, Some((rows, _))) if !health.left.is_empty() => {
            agreeing(rows, "the first {#} {row was|rows were} checked; F checks all").into()
        }
        (true, _) => {
            let groups = health.groups();
            let rows = groups.iter().map(|group| group.count).sum::<u64>();
            let kinds = agreeing(groups.len() as u64, "{#} {kind|kinds}");
            SafeText::join(&[kinds.into(), ", ".into(), figures::count(rows), " found".into()], "")
        }
        (false, _) if health.failure.as_ref().is_some_and(|failure| failure.passes) => {
            "the check ended early; it restarts automatically".into()
        }
        (false, _) if health.failure.is_some() => "the check ended early: r checks again".into(),
        (false, Some((rows, entity))) => {
            let entity = Entity::parse(entity).map_or(entity, Entity::plural);
            agreeing(rows, &format!("{{#}} {{row|rows}} read, now {entity}")).into()
        }
        (false, None) => "looking".into(),
    }
}
