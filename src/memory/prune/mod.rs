//! Rules that choose which cases of a bank to delete, one bank at a time. A case is deleted when any rule says so; a
//! case that one rule keeps can still be deleted by another.

pub mod banks;
pub mod copies;
pub mod verdicts;

/// Cosine above which two cases say the same.
pub const NEAR: f32 = 0.95;
/// Window that is suggested where none is set.
pub const SUGGESTED_WINDOW: i64 = 200;

/// Window that applies to a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PruneWindow {
    /// Each bank's own where no other rule is named, none next to one.
    #[default]
    Unsaid,
    /// Each bank's own, whatever else is named.
    Own,
    /// Fixed number of the newest cases, the same in every bank.
    Newest(i64),
}

impl PruneWindow {
    /// The number of newest cases that a bank keeps, given its own window; none keeps all.
    #[must_use]
    pub fn of(self, own: Option<i64>, rules: &Rules) -> Option<i64> {
        match self {
            PruneWindow::Newest(window) => Some(window),
            PruneWindow::Unsaid if rules.names_one() => None,
            PruneWindow::Unsaid | PruneWindow::Own => own,
        }
    }
}

/// Rules that select the cases to delete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// Cases made before that time, in the canonical spelling.
    pub older_than: Option<String>,
    /// Cases with a reward below that; a case without one stays.
    pub below_reward: Option<f64>,
    /// Cases whose message a newer case of the bank has too.
    pub duplicates: bool,
    /// A window is filled with cases that differ first: one that says what a newer one says gives way to an older one
    /// that does not.
    pub keep_diverse: bool,
}

impl Rules {
    /// Whether a rule is named that applies alone: age, reward or duplicates. Diversity only fills a window.
    #[must_use]
    pub fn names_one(&self) -> bool {
        self.older_than.is_some() || self.below_reward.is_some() || self.duplicates
    }
}

/// Reason why a case goes: the first rule that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PruneReason {
    /// The case is not among the newest that the window keeps.
    Window,
    /// The window keeps a newer one that says the same.
    Alike,
    /// The case is too old.
    Age,
    /// The reward of the case is too low.
    Reward,
    /// A newer case has the same message.
    Duplicate,
}

impl PruneReason {
    /// The reason in a word or two.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PruneReason::Window => "outside the window",
            PruneReason::Alike => "like a newer one",
            PruneReason::Age => "too old",
            PruneReason::Reward => "low reward",
            PruneReason::Duplicate => "duplicate",
        }
    }
}
