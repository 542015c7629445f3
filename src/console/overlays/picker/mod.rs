//! Choice of an episode as the parent of another: by words of its title, by conditions, or by its id.

pub(in crate::console) mod draw;

use crate::change::operation::Operation;
use crate::console::core::{
    ClickTarget, Code, Conditions, Context, Input, Key, Layer, LayerStep, Reply, Request, RequestFailure, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};

/// Most episodes listed.
const LISTED: usize = 40;
/// Milliseconds without a key before the typed text is searched for.
const REST: u64 = 150;

/// The picker.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picker {
    /// The episode that gets a parent.
    pub child: String,
    /// Text that was typed.
    pub input: Input,
    /// Problem with the typed text.
    pub problem: Option<String>,
    /// Episodes that were found, without the child.
    pub rows: Vec<Row>,
    /// Position of the selected one.
    pub selected: usize,
    /// Searches under way.
    pub pending: Vec<Ticket>,
    /// Whether they replace earlier results.
    replaces: bool,
    /// The rest after the last key.
    pub timer: Option<Ticket>,
    /// Failure that prevented the search.
    pub failure: Option<RequestFailure>,
}

impl Picker {
    /// Creates the choice of a parent for an episode.
    pub fn new(child: String) -> Self {
        Picker { child, ..Picker::default() }
    }

    fn move_by(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Searches for the typed text: as conditions or words of the title, and as a part of an id.
    fn search(&mut self, cx: &mut Context) {
        cx.cancel(self.pending.drain(..));
        let text = self.input.text().trim().to_owned();
        (self.timer, self.failure) = (None, None);
        let mut queries = Vec::new();
        match Conditions::parse(Entity::Episode, &text, cx.now, &cx.settings.zone) {
            Ok(conditions) => {
                self.problem = None;
                queries.push((conditions.filters, conditions.canvas));
            }
            Err(problem) => self.problem = Some(problem),
        }
        if !text.is_empty() && !text.contains(char::is_whitespace) {
            let id = Filter::new("id", Operator::Contains, Operand::Text(text));
            queries.push((vec![id], None));
            self.problem = None;
        }
        self.replaces = true;
        for (filters, canvas) in queries {
            let columns = Some(vec!["id", "title", "summary", "topic", "started_at", "outcome", "parent_id"]);
            let query =
                Query { filters, canvas, limit: LISTED, columns, preview: Some(160), ..Query::new(Entity::Episode) };
            self.pending.push(cx.ask(Request::LoadPage(Box::new(query))));
        }
    }

    fn search_soon(&mut self, cx: &mut Context) {
        self.timer = Some(cx.wait(REST));
    }

    /// Proposes the selected episode as the parent. The picker stays open until that is done.
    fn pick(&self, cx: &mut Context) {
        // The listed episodes do not match the typed text yet.
        if self.timer.is_some() || self.replaces {
            return;
        }
        if let Some(row) = self.rows.get(self.selected) {
            cx.propose(Operation::Link { child: self.child.clone(), parent: row.id().to_owned() });
        }
    }
}

impl Layer for Picker {
    fn opened(&mut self, cx: &mut Context) {
        self.search(cx);
    }

    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        match (key.code, key.ctrl) {
            (Code::Esc, _) => {
                cx.cancel(self.pending.drain(..));
                return LayerStep::Closes;
            }
            (Code::Enter, _) => self.pick(cx),
            (Code::Up | Code::BackTab, _) | (Code::Char('p'), true) => self.move_by(-1),
            (Code::Down | Code::Tab, _) | (Code::Char('n'), true) => self.move_by(1),
            (Code::PageUp, _) => self.move_by(-10),
            (Code::PageDown, _) => self.move_by(10),
            _ => {
                let before = self.input.text().to_owned();
                self.input.press(key);
                if self.input.text() != before {
                    self.search_soon(cx);
                }
            }
        }
        LayerStep::Stays
    }

    fn paste(&mut self, text: &str, cx: &mut Context) {
        self.input.paste(text, cx);
        self.search_soon(cx);
    }

    fn click(&mut self, target: &ClickTarget, cx: &mut Context) -> LayerStep {
        match target {
            ClickTarget::MenuItem(position) => self.selected = *position,
            ClickTarget::Overlay => {}
            _ => {
                cx.cancel(self.pending.drain(..));
                return LayerStep::Closes;
            }
        }
        LayerStep::Stays
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, _cx: &mut Context) {
        let Reply::Page(result) = reply else { return };
        self.pending.retain(|pending| *pending != ticket);
        if std::mem::take(&mut self.replaces) {
            self.rows.clear();
            self.selected = 0;
        }
        match result {
            Ok(page) => {
                for row in page.rows {
                    if row.id() != self.child && !self.rows.iter().any(|known| known.id() == row.id()) {
                        self.rows.push(row);
                    }
                }
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn elapsed(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.timer == Some(ticket) {
            self.search(cx);
        }
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
