//! Assignment of a session's canvas events to its episodes. Pure; the rule that linking by session follows.

use std::collections::HashMap;

use crate::memory::Row;

/// An episode of a session: its id and its time span, times in the canonical spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeSpan<'a> {
    /// Id.
    pub id: &'a str,
    /// Start of the episode.
    pub started: Option<&'a str>,
    /// End of the episode; `None` while it is still going on.
    pub ended: Option<&'a str>,
}

/// An episode's id and time span, without the rest of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpannedEpisode {
    /// Id.
    pub id: String,
    started: Option<String>,
    ended: Option<String>,
}

impl SpannedEpisode {
    /// Takes id and span out of a row.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let text = |column: &str| row.text(column).map(str::to_owned);
        SpannedEpisode { id: row.id().to_owned(), started: text("started_at"), ended: text("ended_at") }
    }

    /// The span.
    #[must_use]
    pub fn span(&self) -> EpisodeSpan<'_> {
        EpisodeSpan { id: &self.id, started: self.started.as_deref(), ended: self.ended.as_deref() }
    }
}

/// A canvas event of that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanvasEventTime<'a> {
    /// Time of the event.
    pub at: Option<&'a str>,
    /// The episode that it names already.
    pub names: Option<&'a str>,
}

/// The episodes of one session, ready to be asked whose an event is: that takes as many steps as their number has binary
/// digits, however many there are.
#[derive(Debug)]
pub struct SessionSpans<'a> {
    /// Position by id.
    by_id: HashMap<&'a str, usize>,
    /// Start and position of those that have started, in the order in which they did.
    started: Vec<(&'a str, usize)>,
    /// A tree over the same: the latest end below each node. A node's children are at twice its place and after that.
    ends: Vec<Option<&'a str>>,
    /// Place of the first leaf.
    leaves: usize,
}

impl<'a> SessionSpans<'a> {
    /// The episodes of a session.
    #[must_use]
    pub fn new(episodes: &[EpisodeSpan<'a>]) -> Self {
        let mut by_id = HashMap::new();
        for (position, episode) in episodes.iter().enumerate() {
            by_id.entry(episode.id).or_insert(position);
        }
        let mut order: Vec<(&str, &str, usize)> =
            episodes.iter().enumerate().filter_map(|(i, e)| Some((e.started?, e.id, i))).collect();
        order.sort_unstable();
        let leaves = (order.len() + 1).next_power_of_two();
        let mut ends = vec![None; 2 * leaves];
        for (leaf, (_, _, position)) in order.iter().enumerate() {
            ends[leaves + leaf] = episodes[*position].ended;
        }
        for node in (1..leaves).rev() {
            ends[node] = ends[2 * node].max(ends[2 * node + 1]);
        }
        let started = order.into_iter().map(|(start, _, position)| (start, position)).collect();
        SessionSpans { by_id, started, ends, leaves }
    }

    /// The position of the episode that an event belongs to; none when it belongs to none of them. An event that names an
    /// episode belongs to that one. In a session with one episode all others belong to it; with several, to the one whose
    /// time span holds it (of overlapping ones the last that started), else to the last that started before it.
    #[must_use]
    pub fn owner(&self, event: CanvasEventTime<'_>) -> Option<usize> {
        if let Some(named) = event.names {
            return self.by_id.get(named).copied();
        }
        if self.by_id.len() == 1 {
            return Some(0);
        }
        let at = event.at?;
        let before = self.started.partition_point(|(start, _)| *start <= at);
        let place = self.last_open(before, at).or_else(|| before.checked_sub(1))?;
        self.started.get(place).map(|(_, position)| *position)
    }

    /// Place in the order of starts of the last one before `end` that had not ended at a time.
    fn last_open(&self, end: usize, at: &str) -> Option<usize> {
        let open = |node: usize| self.ends[node].is_some_and(|end| at <= end);
        let mut node = self.leaves + end;
        while node > 1 {
            // What is at the left of a right child comes just before all that was skipped.
            if node % 2 == 1 && open(node - 1) {
                node -= 1;
                while node < self.leaves {
                    node = 2 * node + usize::from(open(2 * node + 1));
                }
                return Some(node - self.leaves);
            }
            node /= 2;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule word by word, episode by episode.
    fn plainly(episodes: &[EpisodeSpan<'_>], event: CanvasEventTime<'_>) -> Option<usize> {
        if let Some(named) = event.names {
            return episodes.iter().position(|e| e.id == named);
        }
        if episodes.len() == 1 {
            return Some(0);
        }
        let at = event.at?;
        let before = || episodes.iter().enumerate().filter(|(_, e)| e.started.is_some_and(|s| s <= at));
        let last = |(_, a): &(usize, &EpisodeSpan<'_>), (_, b): &(usize, &EpisodeSpan<'_>)| {
            (a.started, a.id).cmp(&(b.started, b.id))
        };
        let holds = |(_, e): &(usize, &EpisodeSpan<'_>)| e.ended.is_some_and(|end| at <= end);
        before().filter(holds).max_by(last).or_else(|| before().max_by(last)).map(|(i, _)| i)
    }

    fn owner(episodes: &[EpisodeSpan<'_>], event: CanvasEventTime<'_>) -> Option<usize> {
        SessionSpans::new(episodes).owner(event)
    }

    fn span<'a>(id: &'a str, started: &'a str, ended: &'a str) -> EpisodeSpan<'a> {
        let some = |t: &'a str| Some(t).filter(|t| !t.is_empty());
        EpisodeSpan { id, started: some(started), ended: some(ended) }
    }

    fn at(at: &str) -> CanvasEventTime<'_> {
        CanvasEventTime { at: Some(at), names: None }
    }

    #[test]
    fn one_episode_gets_all_several_share_by_time() {
        let one = [span("a", "10", "20")];
        for moment in ["05", "15", "99"] {
            assert_eq!(owner(&one, at(moment)), Some(0));
        }
        let three = [span("a", "10", "20"), span("b", "30", "40"), span("c", "35", "")];
        for (moment, wanted) in [
            ("05", None),
            ("10", Some(0)),
            ("20", Some(0)),
            ("25", Some(0)),
            ("32", Some(1)),
            ("38", Some(1)),
            ("41", Some(2)),
        ] {
            assert_eq!(owner(&three, at(moment)), wanted, "{moment}");
        }
        assert_eq!(owner(&three, CanvasEventTime { at: None, names: None }), None);
    }

    #[test]
    fn what_an_event_names_counts_whatever_its_time() {
        let two = [span("a", "10", "20"), span("b", "30", "40")];
        assert_eq!(owner(&two, CanvasEventTime { at: Some("15"), names: Some("b") }), Some(1));
        assert_eq!(owner(&two, CanvasEventTime { at: Some("15"), names: Some("elsewhere") }), None);
        assert_eq!(owner(&two[..1], CanvasEventTime { at: Some("15"), names: Some("elsewhere") }), None);
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_looking_at_each_finds(
            spans in prop::collection::btree_map("[a-z]{1,2}", ("[0-9]{0,2}", "[0-9]{0,2}"), 0..40),
            moments in prop::collection::vec("[0-9]{0,2}", 1..20),
            names in "[a-z]{0,2}",
        ) {
            let spans: Vec<EpisodeSpan> = spans.iter().map(|(id, (s, e))| span(id, s, e)).collect();
            let tree = SessionSpans::new(&spans);
            for moment in &moments {
                let moment = CanvasEventTime { at: Some(moment.as_str()).filter(|at| !at.is_empty()), names: None };
                prop_assert_eq!(tree.owner(moment), plainly(&spans, moment));
            }
            let named = CanvasEventTime { at: None, names: Some(&names) };
            prop_assert_eq!(tree.owner(named), plainly(&spans, named));
        }

        #[test]
        fn the_order_of_the_episodes_does_not_matter(
            spans in prop::collection::btree_map("[a-f]", ("[0-9]{2}", "[0-9]{0,2}"), 1..5),
            moment in "[0-9]{2}",
        ) {
            let spans: Vec<EpisodeSpan> = spans.iter().map(|(id, (s, e))| span(id, s, e)).collect();
            let turned: Vec<EpisodeSpan> = spans.iter().rev().copied().collect();
            let id = |all: &[EpisodeSpan], i: Option<usize>| i.map(|i| all[i].id.to_owned());
            prop_assert_eq!(id(&spans, owner(&spans, at(&moment))), id(&turned, owner(&turned, at(&moment))));
        }
    }
}
