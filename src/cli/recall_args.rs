//! The arguments of `recall`, `context` and `evaluate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::recall::inquiry::Inquiry;
use crate::recall::rank;

/// How memories are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RankingChoice {
    /// Episodes by time and likeness, boosted by canvas and feedback.
    Boosted,
    /// Memories and episodes by domain, topic, utility and age.
    Proven,
    /// Cases by cosine, or by the policy in use.
    Cases,
    /// Successful episodes of like situation and outcome.
    Similar,
}

impl From<RankingChoice> for rank::Ranking {
    fn from(ranking: RankingChoice) -> Self {
        match ranking {
            RankingChoice::Boosted => rank::Ranking::Boosted,
            RankingChoice::Proven => rank::Ranking::Proven,
            RankingChoice::Cases => rank::Ranking::Cases,
            RankingChoice::Similar => rank::Ranking::Similar,
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
    #[arg(long, value_enum, required_unless_present = "saved")]
    pub ranking: Option<RankingChoice>,
    /// Ask a question that was kept for this database; what else is said here takes the place of its parts.
    #[arg(long, value_name = "NAME")]
    pub saved: Option<String>,
    /// Keep what is asked under a name, in your own files.
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,
    /// Memories of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Memories of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Rows at most: as many as the bank is set to, else 4, of `similar` 3.
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
    /// Rank cases by this policy; `none` by likeness alone. The policy in use in the bank when not said.
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Take 1 off the score of cases with a low reward that are recalled often, as the finding
    /// `low_reward_often_recalled` names them.
    #[arg(long)]
    pub downweight: bool,
    /// As if it were this moment: RFC 3339 or an age such as 30d. Ages are counted from here.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

impl RecallArgs {
    /// What is asked: a kept question, and what is said beside it.
    #[must_use]
    pub fn inquiry(&self, kept: Option<Inquiry>) -> Inquiry {
        let mut asked = kept.unwrap_or_else(|| Inquiry::new(rank::Ranking::Boosted));
        if let Some(ranking) = self.ranking {
            asked.ranking = ranking.into();
        }
        // A situation takes the place of another one as a whole.
        if self.text.is_some() || self.like.is_some() {
            (asked.text, asked.like) = (self.text.clone(), self.like.clone());
        }
        let said = |kept: &mut Option<String>, said: &Option<String>| {
            if said.is_some() {
                kept.clone_from(said);
            }
        };
        said(&mut asked.agent, &self.agent);
        said(&mut asked.user, &self.user);
        said(&mut asked.domain, &self.domain);
        said(&mut asked.topic, &self.topic);
        said(&mut asked.workflow, &self.workflow);
        said(&mut asked.policy, &self.policy);
        asked.k = self.k.or(asked.k);
        asked.all_outcomes |= self.all_outcomes;
        asked.downweight |= self.downweight;
        asked
    }
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
    pub ranking: Option<RankingChoice>,
    /// Rank cases by this policy; `none` by likeness alone. The policies in use in the banks when not said.
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Rows that count.
    #[arg(short, value_name = "N", default_value_t = crate::recall::judge::ranked::K)]
    pub k: usize,
    /// Seed of samples, nonsense and intervals.
    #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
    pub seed: u64,
}
