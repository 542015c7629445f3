//! A dialog with a gate at its foot.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Drawn;
use super::keys::input_line;
use crate::change::plan::ChangeDanger;
use crate::console::core::key::CONFIRM;
use crate::console::core::{ClickTarget, ConfirmGate};
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{HintKind, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole, TextLine, look as lay};

/// Columns of a dialog, if there is room.
const WIDTH: u16 = 104;

/// A dialog with a gate at its foot.
pub struct Dialog<'a> {
    pub title: SafeText,
    /// After the title.
    pub note: TextLine,
    /// Verb for the effect of confirming.
    pub verb: &'static str,
    pub gate: &'a ConfirmGate,
    pub hints: Vec<KeyHint>,
    /// First line shown.
    pub scroll: usize,
}

impl Dialog<'_> {
    /// Draws it; `lines` gives its text for a number of columns.
    pub fn draw(
        self,
        lines: impl Fn(usize) -> Vec<TextLine>,
        look: &Look,
        area: Rect,
        buf: &mut Buffer,
        drawn: &mut Drawn,
    ) {
        const FOOT: u16 = 3;
        let gate = self.gate;
        let lines = |width: usize| [lines(width), whole_word(gate, width)].concat();
        let width = usize::from(WIDTH.min(area.width)).saturating_sub(6);
        let height = (lines(width).len() as u16).saturating_add(FOOT + 2).min(area.height);
        let tone = match self.gate.step {
            ChangeDanger::Grave => StyleRole::Danger,
            _ => StyleRole::Warn,
        };
        // The danger is always readable, whatever the subject.
        let room = usize::from(WIDTH.min(area.width)).saturating_sub(self.note.width() + 7);
        let title = look.fit(&self.title, room);
        let pane = PaneFrame { note: self.note.clone(), tone: Some(tone), ..PaneFrame::new(title) };
        let modal = Modal { pane, width: WIDTH.min(area.width), height };
        drawn.hits.add(modal.area(area), ClickTarget::Overlay);
        let inside = modal.render(area, buf, look);
        let body = Rect { height: inside.height.saturating_sub(FOOT), ..inside };
        let lines = lines(usize::from(body.width.saturating_sub(2)));
        drawn.measures.overlay_lines = lines.len();
        drawn.measures.overlay_rows = usize::from(body.height);
        let first = self.scroll.min(lines.len().saturating_sub(usize::from(body.height)));
        LineWindow::scrolled(&lines, first).render(body, buf, look);
        if body.height > 0 && inside.height > FOOT {
            drawn.measures.gate = Some(gate.id);
        }
        self.foot(lay::below(inside, body.height), look, buf, drawn);
    }

    fn foot(&self, area: Rect, look: &Look, buf: &mut Buffer, drawn: &mut Drawn) {
        let rule = lay::row(area, 0);
        look.fill(rule, buf, look.glyphs.horizontal, StyleRole::Track);
        let question = lay::row(area, 1);
        let width = usize::from(area.width);
        let ready = self.gate.is_ready();
        let kind = if ready { HintKind::Danger } else { HintKind::Off };
        let confirm = |key: String| KeyHint { kind, ..KeyHint::new(key, self.verb) };
        let mut hints = Vec::new();
        if self.gate.step == ChangeDanger::Grave && !self.gate.can_open() {
            TextLine::of(self.gate.waiting_words(), StyleRole::Stale).render(question, buf, look);
            hints.push(KeyHint::new("esc", "cancel"));
        } else if self.gate.step == ChangeDanger::Grave {
            let word = SafeText::limited(&self.gate.word, width.saturating_sub(20));
            let seen = if self.gate.has_odd_blanks() { "  (blanks as seen)  " } else { "  " };
            let lead = TextLine::of("type ", StyleRole::Text).with(word, StyleRole::Danger).with(seen, StyleRole::Text);
            let used = lead.render(question, buf, look);
            input_line(&self.gate.input, "", look, lay::right_of(question, used), buf);
            hints.extend([confirm("enter".to_owned()), KeyHint::new("esc", "cancel")]);
        } else {
            // Cancel has the focus: enter changes nothing.
            let cancel = TextLine::of(" Cancel ", StyleRole::Text);
            let used = cancel.render(question, buf, look);
            look.select(Rect { width: used, ..question }, buf, StyleRole::Selection);
            drawn.hits.add(Rect { width: used, ..question }, ClickTarget::Cancel);
            // Colour alone would not show that it cannot be confirmed.
            let word =
                if ready { format!("  {CONFIRM} {}", self.verb) } else { format!("  {}", self.gate.waiting_words()) };
            let role = if ready { StyleRole::Danger } else { StyleRole::Stale };
            TextLine::of(word, role).render(lay::right_of(question, used), buf, look);
            hints.push(KeyHint::new("enter", "cancel"));
        }
        hints.extend(self.hints.iter().cloned());
        hint_line(&hints, width).render(lay::row(area, 2), buf, look);
    }
}

/// The word to type, if the foot has no room for all of it.
fn whole_word(gate: &ConfirmGate, width: usize) -> Vec<TextLine> {
    const BESIDE: usize = 18;
    let word = SafeText::new(&gate.word);
    if gate.step != ChangeDanger::Grave || word.width() + BESIDE <= width {
        return Vec::new();
    }
    let parts = word.wrap(width.max(8)).map(|part| TextLine::of(part, StyleRole::Danger));
    [TextLine::default(), TextLine::of("to be typed:", StyleRole::Label)].into_iter().chain(parts).collect()
}
