//! The commands of the recall screen: their availability and their effects.

use super::{RankingWay, RecallCommand, RecallScreen, can_rank, can_rank_any};
use crate::console::core::{Context, Lack};
use crate::recall::rank::Ranking;

/// Most rows that can be requested.
const MOST: usize = 50;

impl RecallScreen {
    /// Checks that a command of this screen is available.
    ///
    /// # Errors
    /// The reason why not, with a remedy.
    pub(super) fn can_ask(&self, ask: RecallCommand, cx: &Context) -> Result<(), Lack> {
        let no = |reason: &str| Err((reason.to_owned(), None));
        let ranking = self.side().way.ranking;
        match ask {
            RecallCommand::Rank(ranking) => can_rank(cx, ranking),
            RecallCommand::Write
            | RecallCommand::Agent
            | RecallCommand::User
            | RecallCommand::Save
            | RecallCommand::Compare
            | RecallCommand::Ways
            | RecallCommand::More(_)
                if !can_rank_any(cx) =>
            {
                no("the database holds nothing that is recalled")
            }
            RecallCommand::Side(_) | RecallCommand::Swap if self.right.is_none() => {
                no("= compares with another ranking first")
            }
            RecallCommand::Narrow if !matches!(ranking, Ranking::Proven | Ranking::Similar) => {
                no("only proven relevance and similar episodes can be narrowed")
            }
            RecallCommand::Outcomes if ranking != Ranking::Similar => {
                no("only similar episodes can leave out failures")
            }
            RecallCommand::Levers if self.side().current().is_none() => no("no row is selected"),
            RecallCommand::Save if !self.asked(self.side()).is_enough() => no("no question yet"),
            RecallCommand::Saved | RecallCommand::Forget if self.saved.as_ref().is_none_or(Vec::is_empty) => {
                no("nothing is saved yet; b k saves the question")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn give(&mut self, ask: RecallCommand, cx: &mut Context) {
        match ask {
            RecallCommand::Write
            | RecallCommand::Agent
            | RecallCommand::User
            | RecallCommand::Narrow
            | RecallCommand::Save => self.write_line(ask, cx),
            RecallCommand::Ways | RecallCommand::Compare => self.offer_ways(ask == RecallCommand::Compare, cx),
            RecallCommand::Saved | RecallCommand::Forget => self.offer_saved(ask == RecallCommand::Forget, cx),
            RecallCommand::Levers => self.offer_levers(cx),
            RecallCommand::Rank(ranking) => self.rank(RankingWay::plain(ranking)),
            RecallCommand::Side(right) => self.turn_to(right),
            RecallCommand::Swap => {
                if let Some(right) = &mut self.right {
                    std::mem::swap(right, &mut self.left);
                }
            }
            RecallCommand::More(more) => {
                let now = self.inquiry.k.unwrap_or_else(|| {
                    let found = self.side().found.as_ref();
                    found.map_or_else(|| self.side().way.ranking.default_k(), |found| found.answer.k)
                });
                let k = if more { now + 1 } else { now.saturating_sub(1) };
                self.inquiry.k = Some(k.clamp(1, MOST));
            }
            RecallCommand::Outcomes => self.inquiry.all_outcomes = !self.inquiry.all_outcomes,
        }
    }
}
