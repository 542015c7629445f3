//! The details of a row: its tabs, and the content of the current one.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, Content, Context};
use crate::console::screens::browse::detail::{Detail, DetailTab, tabs};
use crate::console::screens::browse::draw::episode;
use crate::console::screens::browse::draw::rows;
use crate::console::screens::browse::draw::story;
use crate::console::view::document::DocumentView;
use crate::console::view::{Canvas, DocumentWriter, Drawn, failure_card};
use crate::ui::{
    Card, CardTone, Look, PaneFrame, SafeText, StyleRole, TabLabel, Tabs, TextLine, look as lay, scroll::LineWindow,
};

/// Draws the details with their frame; `filled` if the list beside them was read.
pub fn draw(detail: &Detail, focused: bool, filled: bool, cx: &Context, canvas: &mut Canvas<'_>) {
    let Canvas { look, area, buf, drawn, .. } = canvas;
    let (look, area) = (*look, *area);
    let name = detail.content.as_ref().map(|content| cx.names.of_row(content.row())).unwrap_or_default();
    let pane = PaneFrame {
        title: detail.entity.title().into(),
        note: TextLine::of(
            SafeText::limited(&name, 200),
            if detail.is_stale() { StyleRole::Stale } else { StyleRole::Muted },
        ),
        foot: foot(detail, cx),
        focused,
        tone: None,
    };
    drawn.hits.add(area, ClickTarget::Detail);
    let inside = pane.render(area, buf, look);
    let line = Rect { height: inside.height.min(1), ..inside };
    draw_tabs(detail, look, line, buf, drawn);
    let body = lay::below(inside, 2.min(inside.height));
    let body = lay::padded(body);
    if let Some(card) = message(cx, detail, filled) {
        card.render(body, buf, look);
        return;
    }
    let Some(content) = &detail.content else { return };
    let lanes = match content {
        Content::Episode(context) if detail.current_tab() == DetailTab::Story => {
            story::draw(detail, context, canvas, body)
        }
        _ => 0,
    };
    let body = lay::below(body, lanes.min(body.height));
    let Canvas { buf, drawn, documents, .. } = canvas;
    let width = usize::from(body.width.saturating_sub(2));
    let name = format!(
        "{} {:?} {} {:?} {width} {} {} {} {}",
        detail.entity,
        detail.shown,
        detail.version,
        detail.current_tab(),
        cx.settings.wrap,
        cx.masking.is_on(),
        look.theme.name(),
        cx.names.version(),
    );
    let document = documents.get(name, || write(detail, content, look, width, cx));
    drawn.measures.detail_lines = document.len();
    drawn.measures.detail_rows = usize::from(body.height);
    let text = Rect { width: width as u16, ..body };
    let holding = document.holding(&detail.sought);
    drawn.measures.sought_count = holding.len();
    drawn.measures.sought_line = holding.get(detail.sought_at).map_or(0, |line| line + 1);
    let wanted = if detail.current_tab() == DetailTab::Story {
        document.stop(detail.moment)
    } else {
        detail.moment_row().and_then(|to| document.leading_to(&to))
    };
    drawn.measures.moment_line = wanted.map_or(0, |line| line + 1);
    document.draw((detail.scroll, &detail.sought), text, buf, look, drawn);
    if let Some(line) = wanted.filter(|_| detail.current_tab() == DetailTab::Story && focused) {
        document.mark(line, detail.scroll, text, buf, look);
    }
    if detail.is_stale() {
        buf.set_style(text, look.style(StyleRole::Stale));
    }
    let first = detail.scroll.min(document.len().saturating_sub(usize::from(body.height)));
    scrollbar(first, document.len(), body, buf, look);
}

/// In the lower edge: the search text with the position among its matches, or a note that it is being read.
fn foot(detail: &Detail, cx: &Context) -> TextLine {
    if detail.pending.is_some() {
        return TextLine::of("reading", StyleRole::Muted);
    }
    if detail.sought.is_empty() {
        return TextLine::default();
    }
    let sought = SafeText::limited(&detail.sought, 30);
    let words = match cx.measures.sought_count {
        0 => format!("{sought} was not found here; esc ends it"),
        count => format!("{} of {count} for \"{sought}\"; esc ends it", detail.sought_at % count + 1),
    };
    TextLine::of(SafeText::limited(&words, 60), StyleRole::Muted)
}

/// A scrollbar beside the text if not all of it fits.
fn scrollbar(first: usize, total: usize, body: Rect, buf: &mut Buffer, look: &Look) {
    let blank: Vec<TextLine> = vec![TextLine::default(); usize::from(body.height).min(total.saturating_sub(first))];
    LineWindow { lines: &blank, first, total, selected: None }.render(body, buf, look);
}

fn draw_tabs(detail: &Detail, look: &Look, line: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let labels = tabs(detail.entity).iter().map(|tab| {
        let count = tab.count(detail);
        TabLabel { title: tab.title().into(), count: count.filter(|n| *n > 0).map(|n| n as u64), off: count == Some(0) }
    });
    let labels = Tabs { tabs: labels.collect(), active: detail.tab };
    labels.render(line, buf, look);
    for (index, place) in labels.places(line) {
        drawn.hits.add(place, ClickTarget::Tab(index));
    }
}

fn write(detail: &Detail, content: &Content, look: &Look, width: usize, cx: &Context) -> DocumentView {
    let mut writer = DocumentWriter::new(look, width, cx.settings.wrap, &cx.names);
    match (detail.current_tab(), content) {
        (DetailTab::Raw, Content::Episode(context)) => episode::raw(&mut writer, context),
        (DetailTab::Raw, Content::Row(row)) => writer.json(&row.to_json(), true),
        (DetailTab::Story, Content::Episode(context)) => story::write(&mut writer, &detail.story, context),
        (tab, Content::Episode(context)) => episode::tab(&mut writer, context, &detail.related, tab),
        (DetailTab::Where, Content::Row(_)) => {
            crate::console::screens::browse::draw::presence::lines(&mut writer, detail);
        }
        (DetailTab::Related, Content::Row(_)) => rows::related(&mut writer, detail),
        (_, Content::Row(row)) => rows::overview(&mut writer, row),
    }
    writer.finish()
}

/// Builds the card shown in place of details: nothing is selected, the row does not exist, it is being read, or it
/// could not be read.
fn message(cx: &Context, detail: &Detail, filled: bool) -> Option<Card> {
    if let (Some(failure), None) = (&detail.failure, &detail.content) {
        return Some(failure_card(cx, failure));
    }
    if detail.gone {
        let (title, id) = (detail.entity.title(), SafeText::limited(detail.id(), 60));
        let (what, why) = if detail.shown.is_some() && detail.shown == detail.key {
            (format!("This {title} is gone"), "It was deleted after it was read.")
        } else {
            let why = "It is not in this database: it was deleted, or the reference to it is dangling.";
            (format!("There is no such {title}"), why)
        };
        return Some(Card::new(CardTone::Warn, what).line(id).line(why));
    }
    if detail.content.is_some() {
        return None;
    }
    if detail.key.is_none() {
        return filled.then(|| Card::new(CardTone::Plain, "Nothing is selected"));
    }
    Some(Card::new(CardTone::Plain, "Reading"))
}
