//! A tour of the screens: ten steps, each over the screen it describes.

use ratatui::layout::Rect;

use crate::console::core::command::command;
use crate::console::core::{
    ClickTarget, Code, CommandId, ConsoleCommand, Context, Key, KeyMap, Layer, LayerStep, ScreenKind,
};
use crate::console::view::{Canvas, sentences};
use crate::memory::Entity;
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{KeyHint, Modal, PaneFrame, StyleRole};

/// A step: its destination, its title, and its explanations.
type TourStep = (CommandId, &'static str, &'static [&'static str]);

const STEPS: [TourStep; 10] = [
    (
        CommandId::Home,
        "What happened, and what needs you",
        &[
            "The first screen shows what happened since you last looked, what waits for you, and the newest episodes.",
            "Tab goes from part to part, Enter goes where the line leads. 1 returns here.",
        ],
    ),
    (
        CommandId::List(Entity::Episode),
        "Lists",
        &[
            "Episodes are what agents remember of what happened. / narrows the list while you write: outcome = failure, or words.",
            "s orders it, space follows what agents write, v marks rows. The digits lead to the other lists.",
        ],
    ),
    (
        CommandId::ShowTab("story"),
        "The story of an episode",
        &[
            "What was said, done, shown, and answered, on one time line. Tab goes to the details, h and l to their \
             tabs.",
            "{ and } go to the episode that this one follows, and to those that follow it.",
        ],
    ),
    (
        CommandId::Panel(ScreenKind::Recall),
        "Why is this remembered?",
        &[
            "The situation of the selected row, ranked as agents rank it: every score is the sum of its terms.",
            "/ asks in words, = compares two rankings, x shows what would move a row and plans it.",
        ],
    ),
    (
        CommandId::Panel(ScreenKind::Findings),
        "What is wrong",
        &[
            "Each kind of finding with rows that show it. x fixes it where the console can; m mutes it, with your reason.",
        ],
    ),
    (
        CommandId::Panel(ScreenKind::Inbox),
        "Feedback that needs a look",
        &[
            "The feedback, what it is about, and what your verdict would do: a agrees, x turns it round, i leaves it for later.",
        ],
    ),
    (
        CommandId::List(Entity::Feedback),
        "Change something",
        &[
            "c e edits the row, c d removes it; a read-only session is unlocked on the way.",
            "You see the plan first: what is written, row by row, and which recalls would change. Z undoes the last \
             change.",
        ],
    ),
    (
        CommandId::List(Entity::Subject),
        "Erase a person",
        &[
            "c p shows where the selected person is, and what erasing would do, step by step.",
            "Nothing goes before you type the id; afterwards there is a receipt that can be verified.",
        ],
    ),
    (
        CommandId::Panel(ScreenKind::Jobs),
        "Jobs",
        &["Long changes run in batches. p pauses one, a resumes it, even after the program ended halfway."],
    ),
    (
        CommandId::Panel(ScreenKind::Trail),
        "The trail",
        &[
            "Every change leaves an entry that holds the hash of the one before. This screen walks the chain.",
            "That is all: ? explains the screen that you are on, : finds everything by a few letters, q ends the \
             console.",
        ],
    ),
];

/// Most columns of the tour.
const WIDTH: u16 = 90;

/// The tour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TourLayer {
    /// The current step, from 0.
    step: usize,
}

impl TourLayer {
    /// Goes to the nearest step in a direction whose screen this database supports. False if there is none.
    fn go(&mut self, onward: bool, cx: &mut Context) -> bool {
        let can = |step: &usize| {
            let needs = command(STEPS[*step].0).and_then(ConsoleCommand::needs);
            needs.is_none_or(|entity| cx.holds(entity).is_ok())
        };
        let next = if onward { (self.step + 1..STEPS.len()).find(can) } else { (0..self.step).rev().find(can) };
        if let Some(step) = next {
            self.step = step;
            cx.command(STEPS[step].0);
        }
        next.is_some()
    }
}

impl Layer for TourLayer {
    fn opened(&mut self, cx: &mut Context) {
        cx.command(STEPS[0].0);
    }

    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match key.code {
            Code::Enter | Code::Right | Code::Char('l' | 'n') if self.go(true, cx) => LayerStep::Stays,
            Code::Left | Code::Backspace | Code::Char('h') => {
                self.go(false, cx);
                LayerStep::Stays
            }
            Code::Enter | Code::Esc | Code::Char('q') => LayerStep::Closes,
            _ => LayerStep::Stays,
        }
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        let look = canvas.look;
        let (_, title, told) = STEPS[self.step];
        let width = usize::from(WIDTH.min(canvas.area.width)).saturating_sub(6).max(20);
        let mut told: Vec<String> = told.iter().map(|sentence| (*sentence).to_owned()).collect();
        if cx.settings.keys != KeyMap::default() {
            told.push(format!("These are the usual keys; {} shows your own.", cx.key_for(CommandId::Help)));
        }
        let lines = sentences(&told, StyleRole::Text, width, look);
        let onward = if self.step + 1 < STEPS.len() { "next" } else { "end" };
        let hints = [KeyHint::new("enter", onward), KeyHint::new("backspace", "before"), KeyHint::new("esc", "end")];
        let title = format!("tour {} of {}: {title}", self.step + 1, STEPS.len());
        let pane = PaneFrame { foot: hint_line(&hints, 50), focused: true, ..PaneFrame::new(title) };
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(canvas.area.height);
        // At the bottom, so that the described screen is visible.
        let place = Rect { y: canvas.area.bottom() - height, height, ..canvas.area };
        let modal = Modal { pane, width: WIDTH, height };
        canvas.drawn.hits.add(modal.area(place), ClickTarget::Overlay);
        let inside = modal.render(place, canvas.buf, look);
        LineWindow::scrolled(&lines, 0).render(inside, canvas.buf, look);
    }
}
