//! Rules that select cases of a bank to delete, one bank at a time. A case is deleted when any rule says so; a case
//! that one rule keeps can still be deleted by another.

pub mod banks;
pub mod copies;
pub mod verdicts;

/// Cosine above which two cases say the same.
pub const NEAR: f32 = 0.95;
/// Suggested window if none is set.
pub const SUGGESTED_WINDOW: i64 = 200;

/// Window for a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PruneWindow {
    /// Each bank's own if no other rule is given, otherwise none.
    #[default]
    Unsaid,
    /// Each bank's own, even with other rules.
    Own,
    /// Fixed number of the newest cases, the same in every bank.
    Newest(i64),
}

impl PruneWindow {
    /// The number of newest cases that a bank keeps, given its own window; `None` keeps all.
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
    /// Cases older than this time, in the canonical spelling.
    pub older_than: Option<String>,
    /// Cases with a reward below this; a case without one stays.
    pub below_reward: Option<f64>,
    /// Cases whose message is repeated by a newer case of the bank.
    pub duplicates: bool,
    /// Fills a window with distinct cases first: a case that says the same as a newer one gives way to an older,
    /// different one.
    pub keep_diverse: bool,
}

impl Rules {
    /// Whether a rule is given that selects by itself: age, reward or duplicates. Diversity only fills a window.
    pub fn names_one(&self) -> bool {
        self.older_than.is_some() || self.below_reward.is_some() || self.duplicates
    }
}

/// Reason for deleting a case: the first rule that selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PruneReason {
    /// The case is not among the newest in the window.
    Window,
    /// The window keeps a newer case that says the same.
    Alike,
    /// The case is too old.
    Age,
    /// The reward of the case is too low.
    Reward,
    /// A newer case has the same message.
    Duplicate,
}

impl PruneReason {
    /// The reason in one or two words.
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
