//! Fixes for a finding: the plan of the change, or the screen where it is made.

use super::{FindingsScreen, ShownExample};
use crate::change::operation::{Operation, Pruning};
use crate::console::core::{Conditions, Context, Destination, Proposal, Screen as _, ScreenKind, ToastTone};
use crate::memory::Entity;

/// Window for a bank with a mistaken one, as in its remedy.
const WINDOW: i64 = 200;

impl FindingsScreen {
    /// Fixes the finding if the console can, else describes the fix.
    pub(super) fn fix(&mut self, cx: &mut Context) {
        let Some(finding) = self.finding(&cx.health).cloned() else { return };
        let example = self.examples(&cx.health).get(self.example).map(|example| example.id.to_owned());
        let words: Vec<&str> = finding.remedy.split(' ').collect();
        match (words.as_slice(), example) {
            (["migrate", ..], _) => cx.follow(Destination::Panel(ScreenKind::Migrations)),
            // The first screen lists what cannot be read or seen, with the GRANT that helps.
            (["status"], _) => cx.follow(Destination::Home),
            (["audit", "verify"], _) => cx.follow(Destination::Panel(ScreenKind::Trail)),
            (["policy", "list"], _) => cx.follow(Destination::List(Entity::Policy, Conditions::default())),
            (["purge", ..], Some(person)) if finding.entity.is_some() => cx.follow(Destination::Erase(person)),
            (["unlink", ..], Some(child)) => cx.propose(Operation::Unlink { child }),
            (["supersede", ..], Some(_)) => {
                let mut ids = finding.together;
                if let (Some(text), Some(memory)) = (ids.pop(), ids.into_iter().next()) {
                    cx.propose(Operation::Supersede { memory, text });
                }
            }
            (["merge", ..], Some(_)) => {
                let mut copies = finding.together;
                if let Some(memory) = copies.pop() {
                    cx.propose(Operation::Merge { memory, copies });
                }
            }
            (["show" | "compare", ..], Some(_)) => self.open(cx),
            (["quarantine", _] | ["quarantine", "--", _], Some(case)) => {
                cx.propose(Operation::Quarantine { cases: vec![case] });
            }
            (["quarantine", ..], Some(_)) => cx.propose(Operation::Quarantine { cases: finding.examples }),
            (["reward", ..], Some(case)) => cx.propose(Operation::Reward { case, reward: 0.0, outcome: None }),
            (["profile", "set", ..], Some(profile)) => cx.propose(Operation::Window { profile, window: Some(WINDOW) }),
            (["prune", options @ ..], _) => {
                let duplicates = options.contains(&"--duplicates");
                cx.propose(Operation::Prune(Pruning { duplicates, ..Pruning::default() }));
            }
            (["backfill", name], _) => {
                cx.propose(Proposal::Backfill { name: (*name).to_owned(), resume: false });
            }
            _ => cx.say(ToastTone::Info, format!("{}: y c copies the command", finding.remedy)),
        }
    }
}

/// Returns the comparison of a memory with another one of its finding: the newest with the oldest, any other with the
/// newest.
pub(super) fn beside(example: &ShownExample<'_>) -> Option<Destination> {
    let [oldest, .., newest] = &example.finding.together[..] else { return None };
    let id = example.finding.together.iter().find(|id| *id == example.id)?;
    let pair = if id == newest { [oldest, newest] } else { [id, newest] };
    matches!(example.finding.kind, "near_duplicate_memory" | "contradicting_facts")
        .then(|| Destination::Compare(Entity::Memory, Box::new(pair.map(String::clone))))
}
