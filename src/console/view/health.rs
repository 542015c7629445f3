//! Words for what is wrong or suspicious.

use crate::console::core::health::Health;
use crate::memory::agreeing;
use crate::memory::findings::Severity;
use crate::ui::{SafeText, StyleRole, figures};

pub(in crate::console) fn severity(of: Severity) -> (&'static str, StyleRole) {
    match of {
        Severity::High => ("high", StyleRole::Bad),
        Severity::Medium => ("medium", StyleRole::Warn),
        Severity::Low => ("low", StyleRole::Muted),
    }
}

/// Describes the progress of the health check.
pub(in crate::console) fn progress(health: &Health) -> SafeText {
    match (health.done, health.read) {
        (true, Some((rows, _))) if !health.left.is_empty() => {
            format!("the first {} rows were looked at; F looks at all", figures::count(rows)).into()
        }
        (true, _) => {
            let groups = health.groups();
            let rows = groups.iter().map(|group| group.count).sum::<u64>();
            let kinds = agreeing(groups.len() as u64, "{#} {kind|kinds}");
            SafeText::join(&[kinds.into(), ", ".into(), figures::count(rows), " found".into()], "")
        }
        (false, _) if health.failure.is_some() => "looking ended early".into(),
        (false, Some((rows, entity))) => {
            format!("{} rows read, now {}", figures::count(rows), entity.replace('_', " ")).into()
        }
        (false, None) => "looking".into(),
    }
}
