//! Pruning banks: rules that are set one by one, and their effect, counted again after each step.

pub(in crate::console) mod draw;

use crate::change::operation::{Operation, Pruning};
use crate::change::plan::{Plan, SHOWN};
use crate::console::core::twin::quoted;
use crate::console::core::{
    CommandId, CommandScope, Context, Fetched, Reply, Request, Screen, ScreenFace, ScreenKind, ScreenOrigin, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::Entity;
use crate::memory::prune::PruneWindow;

/// Windows that the screen offers: each bank's own, then fixed ones from wide to narrow.
const WINDOWS: [PruneWindow; 11] = [
    PruneWindow::Unsaid,
    PruneWindow::Own,
    PruneWindow::Newest(500),
    PruneWindow::Newest(200),
    PruneWindow::Newest(100),
    PruneWindow::Newest(50),
    PruneWindow::Newest(20),
    PruneWindow::Newest(10),
    PruneWindow::Newest(5),
    PruneWindow::Newest(3),
    PruneWindow::Newest(1),
];
/// Ages in descending order; `None` for any age.
const AGES: [Option<&str>; 8] =
    [None, Some("365d"), Some("180d"), Some("90d"), Some("60d"), Some("30d"), Some("14d"), Some("7d")];
/// Rewards below which cases are deleted; `None` for any reward.
const REWARDS: [Option<f64>; 10] =
    [None, Some(0.1), Some(0.2), Some(0.3), Some(0.4), Some(0.5), Some(0.6), Some(0.7), Some(0.8), Some(0.9)];

/// A rule that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneRule {
    /// Number of newest cases that a bank keeps.
    Window,
    /// Fill a window with diverse cases.
    Diverse,
    /// Maximum age of a case.
    Age,
    /// Least reward of a case that is kept.
    Reward,
    /// Whether a newer case with the same message replaces it.
    Duplicates,
    /// Whether only the banks of the person who was selected are meant.
    Person,
    /// Whether only the banks of the agent that was selected are meant.
    Agent,
}

/// Every rule, in the order of the screen.
pub const RULES: [PruneRule; 7] = [
    PruneRule::Window,
    PruneRule::Diverse,
    PruneRule::Age,
    PruneRule::Reward,
    PruneRule::Duplicates,
    PruneRule::Person,
    PruneRule::Agent,
];

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PruneScreen {
    /// The rules as they are set.
    pub rules: Pruning,
    /// The person and the agent of the row from which the screen was opened.
    pub of: (Option<String>, Option<String>),
    /// Position of the selected rule.
    pub selected: usize,
    /// Line of the preview at its top.
    pub scroll: usize,
    /// Plan that the rules result in; of older rules while a new count is under way.
    pub preview: Fetched<Box<Plan>>,
}

impl PruneScreen {
    /// The selected rule.
    pub fn rule(&self) -> PruneRule {
        RULES.get(self.selected).copied().unwrap_or(PruneRule::Window)
    }

    /// Steps the selected rule, and counts again.
    fn set(&mut self, on: bool, cx: &mut Context) {
        if self.step(on) {
            self.forget();
            cx.cancel(self.release());
        }
    }

    /// Puts the selected rule on or off, or steps it.
    fn toggle(&mut self, cx: &mut Context) {
        let on = match self.rule() {
            PruneRule::Diverse => !self.rules.keep_diverse,
            PruneRule::Duplicates => !self.rules.duplicates,
            PruneRule::Person => self.rules.user.is_none(),
            PruneRule::Agent => self.rules.agent.is_none(),
            PruneRule::Window | PruneRule::Age | PruneRule::Reward => true,
        };
        self.set(on, cx);
    }

    fn prune(&self, cx: &mut Context) {
        cx.propose(Operation::Prune(self.rules.clone()));
    }

    /// Steps the selected rule to its next value, or back. Whether anything changed.
    fn step(&mut self, on: bool) -> bool {
        let before = self.rules.clone();
        match self.rule() {
            PruneRule::Window => self.rules.window = stepped(&WINDOWS, self.rules.window, on),
            PruneRule::Age => {
                self.rules.older_than = stepped(&AGES, self.rules.older_than.as_deref(), on).map(str::to_owned);
            }
            PruneRule::Reward => self.rules.below_reward = stepped(&REWARDS, self.rules.below_reward, on),
            PruneRule::Diverse => self.rules.keep_diverse = on,
            PruneRule::Duplicates => self.rules.duplicates = on,
            PruneRule::Person => self.rules.user = self.of.0.clone().filter(|_| on),
            PruneRule::Agent => self.rules.agent = self.of.1.clone().filter(|_| on),
        }
        self.rules != before
    }
}

/// The next or previous of some values; a value that is none of them steps to the first.
fn stepped<T: Copy + PartialEq>(values: &[T], now: T, on: bool) -> T {
    let at = values.iter().position(|value| *value == now).unwrap_or_default();
    let to = if on { at + 1 } else { at.saturating_sub(1) };
    values[to.min(values.len() - 1)]
}

impl Screen for PruneScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("prune", ScreenKind::Prune, CommandScope::Prune)
    }

    /// The banks' own windows may be wider or narrower than a fixed one.
    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        match id {
            CommandId::StepRule(on) if self.rule() == PruneRule::Window => Some(if on { "next" } else { "previous" }),
            _ => None,
        }
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        self.rules.words().iter().map(|word| quoted(word)).collect()
    }

    /// Offers the person and the agent of the selected row; sets no rule.
    fn enter(&mut self, origin: &ScreenOrigin, cx: &mut Context) -> bool {
        let of = (origin.person.clone(), origin.id_of(Entity::Agent, "agent_id"));
        if of == (None, None) {
            return false;
        }
        cx.read_names_of(Entity::Subject, of.0.as_deref());
        cx.read_names_of(Entity::Agent, of.1.as_deref());
        self.of = of;
        false
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.preview.is_wanted() {
            self.preview.pending = Some(cx.ask(Request::Preview(Box::new(Operation::Prune(self.rules.clone())))));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, cx: &mut Context) {
        let Reply::Previewed(result) = reply else { return };
        if let Ok(plan) = &result {
            cx.read_names_of_changes(plan.changes.iter().take(SHOWN));
            self.scroll = 0;
        }
        self.preview.take(result);
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::StepRule(on) => self.set(on, cx),
            CommandId::ToggleRule => self.toggle(cx),
            CommandId::ScrollPreview(down) => {
                let by = cx.screenful() as isize;
                self.scroll_by(if down { by } else { -by }, cx);
            }
            CommandId::Prune => self.prune(cx),
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        self.prune(cx);
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        self.select(self.selected.saturating_add_signed(by));
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.scroll = self.scroll.saturating_add_signed(by).min(cx.last_line());
    }

    fn select(&mut self, position: usize) {
        self.selected = position.min(RULES.len() - 1);
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.preview.release()
    }

    fn forget(&mut self) {
        self.preview.forget();
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
