//! Rows of a list: conditions, order, marks, and export to a file.

use super::{ListScreen, WantedPage};
use crate::console::core::columns::read_columns;
use crate::console::core::condition::completions;
use crate::console::core::request::{Export, RowCount};
use crate::console::core::{
    Conditions, Context, Judged, LayerOpening, Menu, MenuChoice, MenuItem, Prompt, Purpose, Request, RowKey, ToastTone,
};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{Order, Query};
use crate::memory::{Entity, ValueKind, agreeing, nearest};

/// Most marked rows that a command line names.
const NAMED: usize = 200;

/// Conditions with times as rows show them.
pub(super) fn told(cx: &Context, conditions: &Conditions) -> String {
    with_times(cx, conditions, |at| cx.with_moments(at))
}

/// Conditions as text: times by the zone's clock, if they parse back to the same.
fn written(cx: &Context, conditions: &Conditions) -> String {
    with_times(cx, conditions, |at| cx.settings.zone.written(at))
}

fn with_times(cx: &Context, conditions: &Conditions, spelled: impl Fn(&str) -> String) -> String {
    let mut shown = cx.masking.shown(conditions);
    for (_, value) in shown.filters.iter_mut().flat_map(Filter::values_mut) {
        if let Operand::Time(at) = value {
            *at = spelled(at);
        }
    }
    shown.line()
}

impl ListScreen {
    /// Lists other rows of the same entity; marks are kept.
    pub(super) fn narrow(&mut self, conditions: Conditions, cx: &mut Context) {
        if self.conditions != conditions {
            self.conditions = conditions;
            cx.cancel(self.live.release());
            self.list_again(WantedPage::First, cx);
        }
    }

    /// Reads the list from its beginning; the old rows stay, dimmed, until then.
    pub(super) fn list_again(&mut self, want: WantedPage, cx: &mut Context) {
        self.ask(want, cx);
        self.widths.doubt();
        cx.renamed();
    }

    /// Reads the list in another order. If the first row is selected, the first row of the new order will be.
    fn sort_again(&mut self, cx: &mut Context) {
        let is_first = self.window.number() == Some(1);
        self.list_again(if is_first { WantedPage::First } else { WantedPage::Sorted }, cx);
    }

    pub(super) fn open_filter(&self, cx: &mut Context) {
        cx.prompt(Purpose::Filter, &written(cx, &self.conditions));
    }

    pub(super) fn filter(&mut self, text: &str, cx: &mut Context) {
        if let Ok(conditions) = Conditions::parse(self.entity, text, cx.now, &cx.settings.zone) {
            self.narrow(conditions, cx);
        }
    }

    /// Describes the number of rows in the list, if known.
    fn rows_left(&self) -> Option<String> {
        let whole = self.window.total().map(|total| RowCount { rows: total as u64, more: false });
        let count = whole.or(self.counted.count).filter(|_| !self.is_stale())?;
        let rows = agreeing(count.rows, "{#} {row|rows}");
        Some(format!("{}{rows}", if count.more { "more than " } else { "" }))
    }

    pub(super) fn name_columns(&self, cx: &mut Context) {
        let shown: Vec<&str> = cx.list_columns(self.entity).into_iter().map(|spec| spec.column).collect();
        cx.prompt(Purpose::Columns, &shown.join(" "));
    }

    /// Shows the named columns in their order; the default ones if none are named.
    pub(super) fn choose_columns(&self, text: &str, cx: &mut Context) {
        let Ok(chosen) = named_columns(self.entity, text, cx) else { return };
        if chosen.is_empty() {
            cx.columns.remove(&self.entity);
        } else {
            cx.columns.insert(self.entity, chosen);
        }
    }

    /// Reads the list again if additional columns were chosen.
    pub(super) fn read_chosen(&mut self, cx: &mut Context) {
        let usual = read_columns(self.entity);
        let shown = cx.list_columns(self.entity).into_iter().map(|spec| spec.column);
        let more: Vec<&'static str> = shown.filter(|column| !usual.contains(column)).collect();
        if self.more != more {
            self.more = more;
            if !self.window.is_empty() {
                self.ask(self.window.again(cx.measures.list_rows), cx);
            }
        }
    }

    pub(super) fn offer_orders(&self, cx: &mut Context) {
        let used = self.order_used();
        let shown = cx.list_columns(self.entity).into_iter().map(|c| c.column);
        let filled = |name: &&str| !cx.opened.unfilled.contains(&(self.entity, *name));
        let others = self.entity.columns().iter().map(|c| c.name).filter(filled);
        let mut names: Vec<&'static str> = Vec::new();
        for name in shown.chain(others).filter(|name| sortable(self.entity, name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let items = names.into_iter().map(|name| MenuItem {
            label: name.replace('_', " "),
            note: match (name == used.column, used.descending) {
                (false, _) => String::new(),
                (true, true) => "descending now".to_owned(),
                (true, false) => "ascending now".to_owned(),
            },
            keys: String::new(),
            choice: MenuChoice::Sort(name),
            unavailable: None,
        });
        let mut menu = Menu::new("Sort by", items.collect());
        menu.selected = menu.items.iter().position(|item| item.choice == MenuChoice::Sort(used.column)).unwrap_or(0);
        cx.show(LayerOpening::Menu(menu));
    }

    /// Sorts the list by a column, numbers and times in descending order; for the current column, reverses the order.
    pub(super) fn order_by(&mut self, column: &'static str, cx: &mut Context) {
        if !sortable(self.entity, column) {
            return cx.say(ToastTone::Warn, format!("rows cannot be ordered by {column}"));
        }
        let used = self.order_used();
        let kind = self.entity.column(column).map(|c| c.kind);
        let descending = if used.column == column { !used.descending } else { !matches!(kind, Some(ValueKind::Text)) };
        self.order = Some(Order { column, descending });
        self.sort_again(cx);
    }

    pub(super) fn sort_beside(&mut self, by: isize, cx: &mut Context) {
        let shown = cx.list_columns(self.entity).into_iter().map(|c| c.column);
        let columns: Vec<_> = shown.filter(|c| sortable(self.entity, c)).collect();
        let used = self.order_used().column;
        let at = columns.iter().position(|c| *c == used).unwrap_or(0) as isize;
        let next = (at + by).rem_euclid(columns.len().max(1) as isize) as usize;
        if let Some(column) = columns.get(next) {
            self.order_by(column, cx);
        }
    }

    pub(super) fn reverse(&mut self, cx: &mut Context) {
        let used = self.order_used();
        self.order = Some(Order { descending: !used.descending, ..used });
        self.sort_again(cx);
    }

    pub(super) fn mark(&mut self) {
        if let Some(key) = self.window.current().map(RowKey::of) {
            if !self.marks.remove(&key) {
                self.marks.insert(key);
            }
            self.window.move_by(1);
        }
    }

    /// Checks that a command line can name the marked rows.
    pub(super) fn can_name_marks(&self) -> Result<(), &'static str> {
        match self.marks.len() {
            0 => Ok(()),
            marked if marked > NAMED => Err("too many rows are marked for a command line"),
            _ if self.marks.iter().any(|key| !key.is_id() || key.id().is_empty()) => {
                Err("rows of this kind have no unique id that a command line could name")
            }
            _ => Ok(()),
        }
    }

    /// The condition that selects the marked rows; `None` if nothing is marked.
    pub(super) fn marked_ones(&self) -> Option<Conditions> {
        let one = |key: &RowKey| Filter::new("id", Operator::Equal, Operand::Text(key.id().to_owned()));
        let mut ids = self.marks.iter().map(one);
        let first = ids.next()?;
        Some(Conditions { filters: vec![Filter { or: ids.collect(), ..first }], canvas: None })
    }

    pub(super) fn name_export(&self, cx: &mut Context) {
        let path = format!("{}-{}.jsonl", self.entity.name(), cx.now.format("%Y%m%d-%H%M%S"));
        cx.prompt(Purpose::Export, &path);
    }

    /// Exports the marked rows, else all rows of the list, to a file.
    pub(super) fn export(&self, path: &str, cx: &mut Context) {
        let query = Query {
            filters: self.conditions.filters.clone(),
            canvas: self.conditions.canvas.clone(),
            order: self.order.clone(),
            ..Query::new(self.entity)
        };
        let only = (!self.marks.is_empty()).then(|| self.marks.iter().cloned().collect());
        let export = Export { query, only, path: path.to_owned(), masked: cx.masking.is_on() };
        cx.exporting = Some((cx.ask_for_all(Request::Export(Box::new(export))), 0));
    }

    /// Describes the meaning of a filter, or the effect of an export.
    pub(super) fn judge_line(&self, prompt: &Prompt, cx: &Context) -> Option<Judged> {
        let text = prompt.input.text();
        match prompt.purpose {
            Purpose::Filter => {
                let (_, found) = completions(self.entity, prompt.input.split().0, &self.values);
                let meant = Conditions::parse(self.entity, text, cx.now, &cx.settings.zone).map(|conditions| {
                    let line = if conditions.is_empty() {
                        "every row".to_owned()
                    } else if [conditions.line(), written(cx, &conditions)].iter().any(|line| line == text.trim()) {
                        String::new()
                    } else {
                        told(cx, &conditions)
                    };
                    let known = (conditions == self.conditions).then(|| self.rows_left()).flatten();
                    [known, Some(line)]
                        .into_iter()
                        .flatten()
                        .filter(|words| !words.is_empty())
                        .collect::<Vec<_>>()
                        .join("   ")
                });
                Some((meant, found))
            }
            Purpose::Columns => Some((
                named_columns(self.entity, text, cx).map(|chosen| match chosen.len() {
                    0 => "the usual columns".to_owned(),
                    n => agreeing(n, "{#} {column|columns}; in a narrow window some are hidden"),
                }),
                more_columns(self.entity, text, cx),
            )),
            Purpose::Export if text.trim().is_empty() => Some((Err("name a file".to_owned()), Vec::new())),
            Purpose::Export => {
                let what = match (self.marks.len(), self.conditions.is_empty()) {
                    (0, true) => "all rows".to_owned(),
                    (0, false) => "all rows that match the filter".to_owned(),
                    (1, _) => "the marked row".to_owned(),
                    (marked, _) => format!("{marked} marked rows"),
                };
                let told = format!("writes {what} as JSON lines; a file that exists is not overwritten");
                Some((Ok(told), Vec::new()))
            }
            _ => None,
        }
    }
}

fn named_columns(entity: Entity, text: &str, cx: &Context) -> Result<Vec<&'static str>, String> {
    let mut chosen: Vec<&'static str> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        let known = || entity.columns().iter().map(|column| column.name);
        let column = entity.column(word).ok_or_else(|| nearest::unknown("column", word, known()))?;
        if cx.opened.unfilled.contains(&(entity, column.name)) {
            return Err(format!("this database has no {}", column.name));
        }
        if !chosen.contains(&column.name) {
            chosen.push(column.name);
        }
    }
    Ok(chosen)
}

/// Completions of the last word of a line to the name of another column.
fn more_columns(entity: Entity, text: &str, cx: &Context) -> Vec<String> {
    let (before, word) = text.rsplit_once(' ').unwrap_or(("", text));
    let is_new = |name: &&str| !before.split_whitespace().any(|known| known == *name) && *name != word;
    let filled = |name: &&'static str| !cx.opened.unfilled.contains(&(entity, *name));
    let names = entity.columns().iter().map(|column| column.name).filter(filled);
    let names = names.filter(is_new).filter(|name| name.starts_with(word));
    names.map(|name| format!("{before} {name}").trim_start().to_owned()).collect()
}

/// Whether rows can be put in order by a column.
fn sortable(entity: Entity, column: &str) -> bool {
    entity.column(column).is_some_and(|c| !matches!(c.kind, ValueKind::Json | ValueKind::List))
}
