//! Assignment of a session's canvas events, and of an execution's feedback, to its episodes. Pure; the rule that linking by
//! session and by execution follows.

use std::collections::HashMap;

use crate::memory::Row;
use crate::memory::digest::digest;

/// Stands for the user whom a row names; 0 when it names none.
pub fn user_of(row: &Row) -> u64 {
    row.text("user_id").filter(|user| !user.trim().is_empty()).map_or(0, digest)
}

/// An episode of a session: its id, its user and its time span, times in the canonical spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeSpan<'a> {
    /// Id.
    pub id: &'a str,
    /// Stands for the user; 0 when none is known.
    pub user: u64,
    /// Start of the episode.
    pub started: Option<&'a str>,
    /// End of the episode; `None` while it is still going on.
    pub ended: Option<&'a str>,
}

/// An episode's id, user and time span, without the rest of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpannedEpisode {
    /// Id.
    pub id: String,
    user: u64,
    started: Option<String>,
    ended: Option<String>,
}

impl SpannedEpisode {
    /// Takes id, user and span out of a row.
    pub fn of(row: &Row) -> Self {
        let text = |column: &str| row.text(column).map(str::to_owned);
        let (started, ended) = (text("started_at"), text("ended_at"));
        SpannedEpisode { id: row.id().to_owned(), user: user_of(row), started, ended }
    }

    /// The span.
    pub fn span(&self) -> EpisodeSpan<'_> {
        let (started, ended) = (self.started.as_deref(), self.ended.as_deref());
        EpisodeSpan { id: &self.id, user: self.user, started, ended }
    }
}

/// A canvas event of that session, or feedback on that execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanvasEventTime<'a> {
    /// Time of the event.
    pub at: Option<&'a str>,
    /// The episode that it already names.
    pub names: Option<&'a str>,
    /// Stands for the user; 0 when none is known.
    pub user: u64,
}

/// The episodes of one session, prepared for look-ups of an event's episode, each in logarithmic time.
#[derive(Debug)]
pub struct SessionSpans<'a> {
    /// Position by id.
    by_id: HashMap<&'a str, usize>,
    first: Option<EpisodeSpan<'a>>,
    all: SpanTree<'a>,
    /// Episodes of each user, and of none.
    of_user: HashMap<u64, SpanTree<'a>>,
}

impl<'a> SessionSpans<'a> {
    /// The episodes of a session.
    pub fn new(episodes: &[EpisodeSpan<'a>]) -> Self {
        let mut by_id = HashMap::new();
        let mut of_user: HashMap<u64, Vec<usize>> = HashMap::new();
        for (position, episode) in episodes.iter().enumerate() {
            by_id.entry(episode.id).or_insert(position);
            of_user.entry(episode.user).or_default().push(position);
        }
        let of_user = of_user.into_iter().map(|(user, of)| (user, SpanTree::new(episodes, of))).collect();
        let all = SpanTree::new(episodes, 0..episodes.len());
        SessionSpans { by_id, first: episodes.first().copied(), all, of_user }
    }

    /// The position of the episode that an event belongs to; none when it belongs to none of them. An event that names an
    /// episode belongs to that one. None belongs to an episode of another user, or to one that started later. Otherwise, in a
    /// session with one episode all belong to it; with several, to the one whose time span holds it (of overlapping ones the
    /// last that started), else to the last that started before it.
    pub fn owner(&self, event: CanvasEventTime<'_>) -> Option<usize> {
        if let Some(named) = event.names {
            return self.by_id.get(named).copied();
        }
        if let Some(only) = self.first.filter(|_| self.by_id.len() == 1) {
            let is_before = only.started.zip(event.at).is_some_and(|(started, at)| at < started);
            let is_other = only.user != event.user && only.user != 0 && event.user != 0;
            return (!is_before && !is_other).then_some(0);
        }
        let at = event.at?;
        if event.user == 0 {
            return self.all.last_at(at).map(|last| last.position);
        }
        let own = [event.user, 0].into_iter().filter_map(|user| self.of_user.get(&user)?.last_at(at));
        own.max().map(|last| last.position)
    }

    /// The position of the episode that feedback on their execution belongs to: as [`SessionSpans::owner`], but one episode gets
    /// all of it, and others than the users of episodes may give it too.
    pub fn feedback_owner(&self, said: CanvasEventTime<'_>) -> Option<usize> {
        if said.names.is_none() && self.by_id.len() == 1 {
            return Some(0);
        }
        let user = if self.of_user.contains_key(&said.user) { said.user } else { 0 };
        self.owner(CanvasEventTime { user, ..said })
    }
}

/// The last episode that had started by a time; one that had not ended comes after all that had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LastStarted<'a> {
    is_open: bool,
    started: &'a str,
    id: &'a str,
    position: usize,
}

/// Episodes in the order in which they started.
#[derive(Debug)]
struct SpanTree<'a> {
    /// Start, id and position of those that have started.
    started: Vec<(&'a str, &'a str, usize)>,
    /// A tree over the same: the latest end below each node. A node's children are at twice its place and after that.
    ends: Vec<Option<&'a str>>,
    /// Place of the first leaf.
    leaves: usize,
}

impl<'a> SpanTree<'a> {
    /// Those at some positions.
    fn new(episodes: &[EpisodeSpan<'a>], positions: impl IntoIterator<Item = usize>) -> Self {
        let start = |at: usize| Some((episodes[at].started?, episodes[at].id, at));
        let mut started: Vec<(&str, &str, usize)> = positions.into_iter().filter_map(start).collect();
        started.sort_unstable();
        let leaves = (started.len() + 1).next_power_of_two();
        let mut ends = vec![None; 2 * leaves];
        for (leaf, (_, _, position)) in started.iter().enumerate() {
            ends[leaves + leaf] = episodes[*position].ended;
        }
        for node in (1..leaves).rev() {
            ends[node] = ends[2 * node].max(ends[2 * node + 1]);
        }
        SpanTree { started, ends, leaves }
    }

    /// The one whose time span holds a time (of overlapping ones the last that started), else the last that started before it.
    fn last_at(&self, at: &str) -> Option<LastStarted<'a>> {
        let before = self.started.partition_point(|(start, ..)| *start <= at);
        let open = self.last_open(before, at);
        let (started, id, position) = *self.started.get(open.or_else(|| before.checked_sub(1))?)?;
        Some(LastStarted { is_open: open.is_some(), started, id, position })
    }

    /// Index, in order of start, of the last one before `end` that had not ended at a time.
    fn last_open(&self, end: usize, at: &str) -> Option<usize> {
        let open = |node: usize| self.ends[node].is_some_and(|end| at <= end);
        let mut node = self.leaves + end;
        while node > 1 {
            // The left sibling of a right child comes just before everything skipped.
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

    /// The rule applied literally, episode by episode.
    fn plainly(episodes: &[EpisodeSpan<'_>], event: CanvasEventTime<'_>) -> Option<usize> {
        if let Some(named) = event.names {
            return episodes.iter().position(|e| e.id == named);
        }
        let fits = |e: &EpisodeSpan<'_>| e.user == event.user || e.user == 0 || event.user == 0;
        if episodes.len() == 1 {
            let is_before = episodes[0].started.zip(event.at).is_some_and(|(start, at)| at < start);
            return (fits(&episodes[0]) && !is_before).then_some(0);
        }
        let at = event.at?;
        let before = || episodes.iter().enumerate().filter(|(_, e)| fits(e) && e.started.is_some_and(|s| s <= at));
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
        EpisodeSpan { id, user: 0, started: some(started), ended: some(ended) }
    }

    fn at(at: &str) -> CanvasEventTime<'_> {
        CanvasEventTime { at: Some(at), names: None, user: 0 }
    }

    fn naming<'a>(at: &'a str, names: &'a str) -> CanvasEventTime<'a> {
        CanvasEventTime { at: Some(at), names: Some(names), user: 0 }
    }

    #[test]
    fn one_episode_gets_all_several_share_by_time() {
        let one = [span("a", "10", "20")];
        for (moment, wanted) in [("05", None), ("15", Some(0)), ("99", Some(0))] {
            assert_eq!(owner(&one, at(moment)), wanted);
        }
        assert_eq!(owner(&one, CanvasEventTime { at: None, names: None, user: 0 }), Some(0));
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
        assert_eq!(owner(&three, CanvasEventTime { at: None, names: None, user: 0 }), None);
    }

    #[test]
    fn what_an_event_names_counts_whatever_its_time() {
        let two = [span("a", "10", "20"), span("b", "30", "40")];
        assert_eq!(owner(&two, naming("15", "b")), Some(1));
        assert_eq!(owner(&two, naming("15", "elsewhere")), None);
        assert_eq!(owner(&two[..1], naming("15", "elsewhere")), None);
    }

    #[test]
    fn the_user_decides_before_the_time() {
        let two = [EpisodeSpan { user: 1, ..span("a", "10", "40") }, EpisodeSpan { user: 2, ..span("b", "20", "30") }];
        let by = |user, moment| CanvasEventTime { user, ..at(moment) };
        for (user, moment, wanted, said) in [
            (1, "25", Some(0), Some(0)),
            (2, "25", Some(1), Some(1)),
            (2, "15", None, None),
            (3, "25", None, Some(1)),
            (0, "25", Some(1), Some(1)),
        ] {
            assert_eq!(owner(&two, by(user, moment)), wanted, "{user} {moment}");
            assert_eq!(SessionSpans::new(&two).feedback_owner(by(user, moment)), said, "{user} {moment}");
        }
        assert_eq!(owner(&two[..1], by(2, "25")), None);
        assert_eq!(SessionSpans::new(&two[..1]).feedback_owner(by(2, "05")), Some(0));
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_looking_at_each_finds(
            spans in prop::collection::btree_map("[a-z]{1,2}", ("[0-9]{0,2}", "[0-9]{0,2}", 0_u64..3), 0..40),
            moments in prop::collection::vec("[0-9]{0,2}", 1..20),
            names in "[a-z]{0,2}",
            user in 0_u64..4,
        ) {
            let spans: Vec<EpisodeSpan> =
                spans.iter().map(|(id, (s, e, user))| EpisodeSpan { user: *user, ..span(id, s, e) }).collect();
            let tree = SessionSpans::new(&spans);
            for moment in &moments {
                let moment = CanvasEventTime { at: Some(moment.as_str()).filter(|at| !at.is_empty()), names: None, user };
                prop_assert_eq!(tree.owner(moment), plainly(&spans, moment));
            }
            let named = CanvasEventTime { at: None, names: Some(&names), user };
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
