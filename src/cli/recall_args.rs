//! The arguments of `recall`, `context` and `evaluate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::recall::rank;

/// How memories are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ranking {
    /// Episodes by time and likeness, boosted by canvas and feedback.
    Boosted,
    /// Memories and episodes by domain, topic, utility and age.
    Proven,
    /// Cases by cosine, or by a learned policy.
    Cases,
    /// Successful episodes of like situation and outcome.
    Similar,
}

impl From<Ranking> for rank::Ranking {
    fn from(ranking: Ranking) -> Self {
        match ranking {
            Ranking::Boosted => rank::Ranking::Boosted,
            Ranking::Proven => rank::Ranking::Proven,
            Ranking::Cases => rank::Ranking::Cases,
            Ranking::Similar => rank::Ranking::Similar,
        }
    }
}

/// What is asked, and how it is ranked.
#[derive(Debug, Clone, Args)]
pub struct RecallArgs {
    /// The situation in words. Compared by vectors where the profile names an embedding endpoint, else by keywords.
    pub text: Option<String>,
    /// A stored situation: the id of an episode, a case or a memory.
    #[arg(long, value_name = "ID")]
    pub like: Option<String>,
    /// How to rank.
    #[arg(long, value_enum)]
    pub ranking: Ranking,
    /// Memories of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Memories of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Rows at most: 4, of `similar` 3.
    #[arg(short, value_name = "N")]
    pub k: Option<usize>,
    /// Domain that is sought (proven).
    #[arg(long)]
    pub domain: Option<String>,
    /// Topic that is sought (proven).
    #[arg(long)]
    pub topic: Option<String>,
    /// Episodes of this workflow (similar).
    #[arg(long)]
    pub workflow: Option<String>,
    /// Not only successes (similar).
    #[arg(long)]
    pub all_outcomes: bool,
    /// Rank cases by this policy instead of the cosine.
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// As if it were this moment: RFC 3339 or an age such as 30d. Ages are counted from here.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

/// What is judged, and by what.
#[derive(Debug, Clone, Args)]
pub struct EvaluateArgs {
    /// Judged queries; stored outcomes are taken when not said. `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub judged: Option<PathBuf>,
    /// case or episode; found out when not said.
    #[arg(long, value_name = "ENTITY")]
    pub of: Option<String>,
    /// The ranking that is judged: `cases` for cases, `boosted` for episodes when not said.
    #[arg(long, value_enum)]
    pub ranking: Option<Ranking>,
    /// Rank cases by this policy instead of the cosine.
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Rows that count.
    #[arg(short, value_name = "N", default_value_t = crate::recall::judge::ranked::K)]
    pub k: usize,
    /// Seed of samples, nonsense and intervals.
    #[arg(long, default_value_t = crate::change::policy::SEED)]
    pub seed: u64,
}
