//! Which episode of a session each of its canvas events belongs to. Pure; the rule that linking by session follows.

/// An episode of a session: its id and its time span, times in the canonical spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// Id.
    pub id: &'a str,
    /// When it started.
    pub started: Option<&'a str>,
    /// When it ended; none while it has not.
    pub ended: Option<&'a str>,
}

/// A canvas event of that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment<'a> {
    /// When it happened.
    pub at: Option<&'a str>,
    /// The episode that it names already.
    pub names: Option<&'a str>,
}

/// The position of the episode that an event belongs to; none when it belongs to none of them. An event that names an
/// episode belongs to that one. In a session with one episode all others belong to it; with several, to the one whose
/// time span holds it (of overlapping ones the last that started), else to the last that started before it.
#[must_use]
pub fn owner(episodes: &[Span<'_>], event: Moment<'_>) -> Option<usize> {
    if let Some(named) = event.names {
        return episodes.iter().position(|e| e.id == named);
    }
    if episodes.len() == 1 {
        return Some(0);
    }
    let at = event.at?;
    let started = |(_, e): &(usize, &Span<'_>)| e.started.is_some_and(|s| s <= at);
    let before = || episodes.iter().enumerate().filter(started);
    let later = |(_, a): &(usize, &Span<'_>), (_, b): &(usize, &Span<'_>)| (a.started, a.id).cmp(&(b.started, b.id));
    let holds = |(_, e): &(usize, &Span<'_>)| e.ended.is_some_and(|end| at <= end);
    before().filter(holds).max_by(later).or_else(|| before().max_by(later)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span<'a>(id: &'a str, started: &'a str, ended: &'a str) -> Span<'a> {
        let some = |t: &'a str| Some(t).filter(|t| !t.is_empty());
        Span { id, started: some(started), ended: some(ended) }
    }

    fn at(at: &str) -> Moment<'_> {
        Moment { at: Some(at), names: None }
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
        assert_eq!(owner(&three, Moment { at: None, names: None }), None);
    }

    #[test]
    fn what_an_event_names_counts_whatever_its_time() {
        let two = [span("a", "10", "20"), span("b", "30", "40")];
        assert_eq!(owner(&two, Moment { at: Some("15"), names: Some("b") }), Some(1));
        assert_eq!(owner(&two, Moment { at: Some("15"), names: Some("elsewhere") }), None);
        assert_eq!(owner(&two[..1], Moment { at: Some("15"), names: Some("elsewhere") }), None);
    }

    proptest! {
        #[test]
        fn the_order_of_the_episodes_does_not_matter(
            spans in prop::collection::btree_map("[a-f]", ("[0-9]{2}", "[0-9]{0,2}"), 1..5),
            moment in "[0-9]{2}",
        ) {
            let spans: Vec<Span> = spans.iter().map(|(id, (s, e))| span(id, s, e)).collect();
            let turned: Vec<Span> = spans.iter().rev().copied().collect();
            let id = |all: &[Span], i: Option<usize>| i.map(|i| all[i].id.to_owned());
            prop_assert_eq!(id(&spans, owner(&spans, at(&moment))), id(&turned, owner(&turned, at(&moment))));
        }
    }
}
