//! Comparison of two recalled rows, term by term: why one is before the other.

use super::super::RankingSide;
use super::letter_of;
use crate::console::core::row_name;
use crate::console::view::Sheet;
use crate::recall::answer::RecalledItem;
use crate::recall::why::letters;
use crate::ui::{Align, SafeText, StyleRole};

/// Differences that no term is blamed for.
const SAME: f64 = 5e-5;

/// Draws the selected row against the first of the list; the first against the second.
pub fn draw(sheet: &mut Sheet<'_>, side: &RankingSide, item: &RecalledItem) {
    let place = usize::from(side.selected == 0);
    let Some(other) = side.rows().get(place) else { return };
    let (own, theirs) = (&item.ranked.score, &other.ranked.score);
    sheet.section(&format!("against {}", place + 1));
    sheet.text(&row_name(&other.ranked.row), StyleRole::Muted);
    let (look, apart) = (sheet.look(), own.total - theirs.total);
    // A term with the opposite sign does not explain the difference.
    let mut most = (0.0, "");
    for (index, (term, letter)) in own.terms.iter().zip(letters(own)).enumerate() {
        let Some(same) = theirs.terms.iter().find(|other| other.name == term.name) else { continue };
        let by = term.contribution - same.contribution;
        if by * apart > most.0 * apart {
            most = (by, term.name);
        }
        let mut line = letter_of(index, letter, look);
        line.push(look.pad(&SafeText::from(term.name.replace('_', " ")), 13, Align::Left), StyleRole::Label);
        line.push(format!("{:>+7.4} - {:>+7.4} = ", term.contribution, same.contribution), StyleRole::Muted);
        line.push(format!("{by:>+7.4}"), if by.abs() < SAME { StyleRole::Muted } else { StyleRole::Number });
        sheet.line(line);
    }
    let ahead = if apart < 0.0 { "behind" } else { "ahead" };
    let words = match most {
        (by, name) if by.abs() >= SAME && apart.abs() >= SAME => {
            format!("{:.4} {ahead}, mostly by {} ({by:+.4})", apart.abs(), name.replace('_', " "))
        }
        _ => "equally high: the newer one comes first, then the smaller id".to_owned(),
    };
    sheet.text(&words, StyleRole::Info);
}
