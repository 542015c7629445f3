//! A line to write at the foot of the screen, judged while it is written.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::condition::{KnownValues, completions};
use crate::console::core::{
    ClickTarget, Code, Context, Input, Key, Layer, LayerStep, Prompt, Purpose, ScreenAction, Ticket,
};
use crate::console::view::{Canvas, Drawn, input_line};
use crate::ui::chrome::hint_line;
use crate::ui::{KeyHint, Look, PaneFrame, SafeText, StyleRole, look as lay};

/// A line input over the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptLayer {
    /// Text being typed, with its purpose and meaning.
    pub prompt: Prompt,
    /// Text of the line when it was opened.
    begun: String,
    /// Whether the line still holds a proposal, which the first text typed replaces.
    proposed: bool,
    /// Timer that runs until the text has not changed for long enough.
    resting: Option<Ticket>,
}

/// Milliseconds without a change before a line is tried.
const STILL: u64 = 200;

impl PromptLayer {
    /// A line that was opened.
    pub fn new(prompt: Prompt) -> Self {
        let proposed = prompt.purpose == Purpose::Place;
        PromptLayer { begun: prompt.input.text().to_owned(), prompt, proposed, resting: None }
    }

    /// Returns true when the text is tried while it is typed: only a filter is.
    fn is_tried(&self) -> bool {
        self.prompt.purpose == Purpose::Filter
    }

    /// Restarts the timer after a key: the text is tried once it has not changed for a while.
    fn stir(&mut self, cx: &mut Context) {
        if self.is_tried() {
            cx.cancel(self.resting.take());
            self.resting = Some(cx.wait(STILL));
        }
    }

    /// Reverts the provisional effect.
    fn take_back(&mut self, cx: &mut Context) {
        cx.cancel(self.resting.take());
        if self.is_tried() {
            cx.act(ScreenAction::Try(self.prompt.purpose, self.begun.clone(), true));
        }
    }

    fn accept(&self, cx: &mut Context) -> LayerStep {
        let prompt = &self.prompt;
        if prompt.verdict.is_err() {
            return LayerStep::Stays;
        }
        let text = prompt.input.text().trim().to_owned();
        cx.act(ScreenAction::Write(prompt.purpose, prompt.subject.clone(), text));
        LayerStep::Closes
    }

    /// Drops a proposal if the first input is text; any other key keeps it for editing.
    fn settle_proposal(&mut self, is_text: bool) {
        if std::mem::take(&mut self.proposed) && is_text {
            self.prompt.input = Input::default();
        }
    }

    /// Brings back a line written before, `by` steps older.
    fn recall(&mut self, by: isize) {
        let prompt = &mut self.prompt;
        let next = match prompt.recalled {
            None => (by > 0).then_some(0),
            Some(at) => at.checked_add_signed(by),
        };
        match next.map(|at| (at, prompt.earlier.get(at))) {
            Some((at, Some(text))) => {
                prompt.input = Input::holding(text);
                prompt.recalled = Some(at);
            }
            None if prompt.recalled.is_some() => {
                prompt.input = Input::default();
                prompt.recalled = None;
            }
            Some((_, None)) | None => {}
        }
    }

    /// Inserts the first completion at the cursor.
    fn complete(&mut self) {
        let prompt = &mut self.prompt;
        let Some(first) = prompt.completions.first().cloned() else { return };
        match prompt.lists.filter(|_| prompt.purpose == Purpose::Filter) {
            Some(entity) => {
                let (word, _) = completions(entity, prompt.input.split().0, &KnownValues::new());
                prompt.input.complete(word.len(), &format!("{first} "));
            }
            None => prompt.input = Input::holding(&first),
        }
    }
}

impl Layer for PromptLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        self.settle_proposal(key.typed().is_some());
        match key.code {
            Code::Esc => {
                self.take_back(cx);
                return LayerStep::Closes;
            }
            Code::Enter => return self.accept(cx),
            Code::Up => self.recall(1),
            Code::Down => self.recall(-1),
            Code::Tab => self.complete(),
            _ => {
                if self.prompt.input.press(key) {
                    self.prompt.recalled = None;
                }
            }
        }
        self.stir(cx);
        LayerStep::Stays
    }

    fn paste(&mut self, text: &str, cx: &mut Context) {
        self.settle_proposal(true);
        self.prompt.input.paste(text, cx);
        self.stir(cx);
    }

    fn elapsed(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.resting.take_if(|resting| *resting == ticket).is_some() {
            let (before, after) = self.prompt.input.split();
            let line = format!("{before}{after}");
            cx.act(ScreenAction::Complete(self.prompt.purpose, before.to_owned()));
            cx.act(ScreenAction::Try(self.prompt.purpose, line.trim().to_owned(), self.prompt.verdict.is_ok()));
        }
    }

    fn draw(&self, _cx: &Context, canvas: &mut Canvas<'_>) {
        draw_prompt(&self.prompt, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

/// Most lines for the meaning of a line.
const TOLD: usize = 3;

/// Meaning of a line, wrapped to the width; if there are too many lines, the last one says so.
fn shown_lines(told: &str, room: usize, look: &Look) -> Vec<SafeText> {
    let mut lines: Vec<SafeText> = look.spelled(&SafeText::limited(told, (TOLD + 1) * room)).wrap(room).collect();
    if lines.len() > TOLD {
        let rest = SafeText::join(&lines.split_off(TOLD - 1), " ");
        lines.push(look.fit(&rest, room));
    }
    lines
}

/// The line at the foot of the screen, with its meaning above it.
fn draw_prompt(prompt: &Prompt, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let has_completions = !prompt.completions.is_empty();
    // An empty line is not marked as an error.
    let is_wrong = prompt.verdict.is_err() && !prompt.input.text().trim().is_empty();
    let (Ok(told) | Err(told)) = &prompt.verdict;
    let role = if is_wrong { StyleRole::Bad } else { StyleRole::Muted };
    let room = usize::from(area.width.saturating_sub(4)).max(1);
    let told = shown_lines(told, room, look);
    let lines = told.len().max(1) as u16;
    let height = 3 + lines + u16::from(has_completions);
    let place = Rect { y: area.bottom().saturating_sub(height), height: height.min(area.height), ..area };
    Look::clear(place, buf);
    let (title, enter) = match prompt.purpose {
        Purpose::Filter => ("Filter", "apply"),
        Purpose::Columns => ("Columns", "show"),
        Purpose::Export => ("Export to", "write"),
        Purpose::Reason => ("Reason", "keep"),
        Purpose::Note => ("Note", "keep"),
        Purpose::Reward => ("Reward, and outcome", "plan"),
        Purpose::Window => ("Cases to keep", "plan"),
        Purpose::Topic => ("Topic to replay", "replay"),
        Purpose::Person => ("Erase whom", "look"),
        Purpose::Hold => ("Hold, because of", "plan"),
        Purpose::Situation => ("Situation", "rank"),
        Purpose::Agent => ("Agent", "rank"),
        Purpose::User => ("User", "rank"),
        Purpose::Narrow => ("Narrowed to", "rank"),
        Purpose::Keep => ("Keep as", "keep"),
        Purpose::Mute => ("Mute, because", "mute"),
        Purpose::Moment => ("As of", "look"),
        Purpose::Find => ("Find", "look for it"),
        Purpose::Within => ("Find in the details", "look for it"),
        Purpose::Place => ("Save this place as", "keep"),
        Purpose::Database => ("Open", "open"),
    };
    let mut hints = vec![KeyHint::new("enter", enter)];
    if matches!(prompt.purpose, Purpose::Filter | Purpose::Columns | Purpose::Agent | Purpose::User) {
        hints.push(KeyHint::new("tab", "complete"));
    }
    if prompt.purpose == Purpose::Filter {
        hints.push(KeyHint::new("up", "earlier"));
    }
    hints.push(KeyHint::new("esc", "close"));
    let foot = hint_line(&hints, usize::from(place.width.saturating_sub(8)));
    let tone = is_wrong.then_some(StyleRole::Bad);
    let pane = PaneFrame { foot, focused: true, tone, ..PaneFrame::new(title) };
    drawn.hits.add(place, ClickTarget::Overlay);
    let inside = lay::padded(pane.render(place, buf, look));
    input_line(&prompt.input, "", look, lay::row(inside, 0), buf);
    for (at, text) in told.iter().enumerate() {
        look.text(lay::row(inside, 1 + at as u16), buf, text, role);
    }
    if has_completions {
        let names: Vec<SafeText> = prompt.completions.iter().map(|name| SafeText::limited(name, 30)).collect();
        look.text(lay::row(inside, 1 + lines), buf, &SafeText::join(&names, "  "), StyleRole::Accent);
    }
}
