//! Commands and choices of the recall screen.

use crate::recall::answer::NO_POLICY;
use crate::recall::inquiry::SavedQuestion;
use crate::recall::rank::Ranking;

/// A command of this screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecallCommand {
    /// Write a situation.
    Write,
    /// Rank in that way.
    Rank(Ranking),
    /// Choose among all ways to rank, policies too.
    Ways,
    /// Choose a ranking to compare with.
    Compare,
    /// The other of two rankings.
    Side(bool),
    /// Exchange the two rankings.
    Swap,
    /// One row more, or one fewer.
    More(bool),
    /// Choose a change that would move the selected row.
    Levers,
    /// Choose the agent.
    Agent,
    /// Choose the user.
    User,
    /// Domain and topic, or the workflow.
    Narrow,
    /// Successes only, or all.
    Outcomes,
    /// Save the question under a name.
    Save,
    /// Ask a saved question.
    Saved,
    /// Delete a saved question.
    Forget,
}

/// A way to rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankingWay {
    /// The ranking.
    pub ranking: Ranking,
    /// The learned policy (cases): an id, or none; the policy in use if unset.
    pub policy: Option<String>,
    /// Version of the policy, when known.
    pub version: Option<i64>,
}

impl RankingWay {
    /// A ranking on its own.
    pub fn plain(ranking: Ranking) -> Self {
        RankingWay { ranking, policy: None, version: None }
    }

    /// Cases by similarity alone, whatever policy is in use.
    pub fn without_policy() -> Self {
        RankingWay { policy: Some(NO_POLICY.to_owned()), ..RankingWay::plain(Ranking::Cases) }
    }

    /// Returns the name of the way.
    pub fn name(&self) -> String {
        match (&self.policy, self.version) {
            (Some(_), Some(version)) => format!("{} by policy version {version}", self.ranking.name()),
            (Some(policy), None) if policy == NO_POLICY => format!("{} without a policy", self.ranking.name()),
            (Some(policy), None) => format!("{} by policy {policy}", self.ranking.name()),
            (None, _) => self.ranking.name().to_owned(),
        }
    }
}

/// A choice from a menu of the recall screen.
#[derive(Debug, Clone, PartialEq)]
pub enum RecallPick {
    /// A way to rank.
    Rank(RankingWay),
    /// Ranking to compare with; `None` ends the comparison.
    Compare(Option<RankingWay>),
    /// Ask a saved question.
    Run(Box<SavedQuestion>),
    /// Delete the saved question with this name.
    Forget(String),
}
