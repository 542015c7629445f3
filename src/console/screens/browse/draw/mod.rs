//! Draws lists and details: side by side on wide screens, above each other on high ones, else one at a time.

mod chain;
mod columns;
pub(super) mod details;
mod episode;
mod list;
mod presence;
mod rows;
mod story;
mod summary;
mod utility;

use ratatui::layout::Rect;

pub use columns::MeasuredColumns;

use super::{BrowsePane, ListScreen};
use crate::console::core::Context;
use crate::console::view::Canvas;
use crate::ui::{Look, look as lay};

pub fn draw_list(screen: &ListScreen, cx: &Context, canvas: &mut Canvas<'_>) {
    let (list, detail) = panes(screen, cx, canvas.area, canvas.look);
    if let Some(area) = list {
        list::draw(cx, screen, canvas.look, area, canvas.buf, canvas.drawn);
    }
    if let Some(area) = detail {
        let body = std::mem::replace(&mut canvas.area, area);
        details::draw(&screen.detail, screen.pane == BrowsePane::Detail, screen.window.is_filled(), cx, canvas);
        canvas.area = body;
    }
}

/// Columns that a step makes a list wider, and rows that it makes it higher.
const STEP: (i16, i16) = (6, 2);

/// Least columns for list and details side by side.
const WIDE: u16 = 120;
/// Least rows for them above each other.
const HIGH: u16 = 26;

/// Whether one of the two takes the whole screen.
pub fn is_alone(browse: &ListScreen, cx: &Context) -> bool {
    /// Rows of the lines around a screen.
    const FRAME: u16 = 3;
    let (width, height) = cx.size;
    browse.zoomed || (width < WIDE && height.saturating_sub(FRAME) < HIGH)
}

/// Divides the body between list and details. Neither gets more than it can fill while the other lacks room.
fn panes(browse: &ListScreen, cx: &Context, body: Rect, look: &Look) -> (Option<Rect>, Option<Rect>) {
    let one = |pane| if pane == BrowsePane::List { (Some(body), None) } else { (None, Some(body)) };
    if browse.zoomed {
        return one(browse.pane);
    }
    if look.is_beside(body.width, WIDE) {
        let width = stepped(list_width(browse, cx, body.width), cx.pane_steps * STEP.0, body.width, 40);
        let (left, right) = lay::side_by_side(body, width);
        return (Some(left), Some(right));
    }
    if body.height >= HIGH {
        let height = stepped(list_height(browse, body.height), cx.pane_steps * STEP.1, body.height, 6);
        let (above, below) = lay::stacked(body, height);
        return (Some(above), Some(below));
    }
    one(browse.pane)
}

/// A size adjusted by hand; both panes keep `least`.
fn stepped(size: u16, by: i16, whole: u16, least: u16) -> u16 {
    size.saturating_add_signed(by).clamp(least, whole.saturating_sub(least).max(least))
}

/// Somewhat more than half, or less if the columns need less.
fn list_width(browse: &ListScreen, cx: &Context, whole: u16) -> u16 {
    const FRAME: u16 = 2;
    const LEAST: u16 = 56;
    /// Width in which details show everything but long texts without a break.
    const DETAILS: u16 = 76;
    let columns = cx.list_columns(browse.entity);
    let wanted = columns::wanted(&columns, &browse.widths, browse.order_used().column);
    wanted.saturating_add(FRAME).clamp(LEAST, (whole * 11 / 20).max(whole.saturating_sub(DETAILS)))
}

/// Somewhat less than half; less if there are few rows, more if the details need less.
fn list_height(browse: &ListScreen, whole: u16) -> u16 {
    const LIST_FRAME: usize = 3;
    const DETAIL_FRAME: usize = 4;
    const LEAST: u16 = 8;
    let half = whole * 9 / 20;
    let few = browse.window.is_at_end() && browse.window.is_filled();
    let rows = if few { browse.window.len() + LIST_FRAME } else { usize::MAX };
    let details = if browse.tallest == 0 { usize::MAX } else { browse.tallest + DETAIL_FRAME };
    let left = usize::from(whole).saturating_sub(details).max(usize::from(half));
    u16::try_from(left.min(rows)).unwrap_or(whole).clamp(LEAST, whole - LEAST)
}
