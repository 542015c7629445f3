//! Draws lists and details: side by side on wide screens, above each other on high ones, else one at a time.

mod chain;
pub(super) mod details;
mod episode;
mod list;
mod presence;
mod rows;
mod summary;
mod utility;

use ratatui::layout::Rect;

use super::{BrowsePane, ListScreen};
use crate::console::core::context::Context;
use crate::console::view::Canvas;

/// Draws a list with its details.
pub fn draw_list(screen: &ListScreen, cx: &Context, canvas: &mut Canvas<'_>) {
    let (list, detail) = panes(screen, canvas.area);
    if let Some(area) = list {
        list::draw(cx, screen, canvas.look, area, canvas.buf, canvas.drawn);
    }
    if let Some(area) = detail {
        let body = std::mem::replace(&mut canvas.area, area);
        details::draw(&screen.detail, screen.pane == BrowsePane::Detail, screen.window.is_filled(), cx, canvas);
        canvas.area = body;
    }
}

/// Where list and details stand.
fn panes(browse: &ListScreen, body: Rect) -> (Option<Rect>, Option<Rect>) {
    const WIDE: u16 = 120;
    const HIGH: u16 = 26;
    let one = |pane| if pane == BrowsePane::List { (Some(body), None) } else { (None, Some(body)) };
    if browse.zoomed {
        return one(browse.pane);
    }
    if body.width >= WIDE {
        let width = body.width * 11 / 20;
        let left = Rect { width, ..body };
        let right = Rect { x: body.x + width, width: body.width - width, ..body };
        return (Some(left), Some(right));
    }
    if body.height >= HIGH {
        let height = body.height * 9 / 20;
        let above = Rect { height, ..body };
        let below = Rect { y: body.y + height, height: body.height - height, ..body };
        return (Some(above), Some(below));
    }
    one(browse.pane)
}
