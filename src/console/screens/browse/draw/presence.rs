//! Whereabouts of a person, as a tab of their details.

use crate::change::plan::erasure::Preview;
use crate::console::screens::browse::detail::Detail;
use crate::console::view::{DocumentWriter, person, tally};
use crate::ui::{SafeText, StyleRole, TextLine, figures};

/// Handles of one kind shown beside everything else.
const HANDLES: usize = 6;

/// Writes where the person occurs, or the progress of the search.
pub fn lines(writer: &mut DocumentWriter<'_>, detail: &Detail) {
    let known = &detail.whereabouts;
    match (&known.found.value, &known.found.failure) {
        (Some(found), _) => found_lines(writer, found),
        (None, Some(failure)) => {
            writer.hanging(TextLine::default(), &SafeText::limited(&failure.what, 100), StyleRole::Bad);
            writer.hanging(TextLine::default(), &SafeText::limited(&failure.message, 400), StyleRole::Text);
            if let Some(remedy) = &failure.remedy {
                writer.hanging(TextLine::default(), &SafeText::limited(remedy, 300), StyleRole::Muted);
            }
        }
        (None, None) => {
            writer.text("looking everywhere", StyleRole::Info);
            if let Some((table, values)) = &known.looking {
                let words = [SafeText::limited(table, 40), ": ".into(), figures::count(*values), " values read".into()];
                writer.hanging(TextLine::default(), &SafeText::join(&words, ""), StyleRole::Muted);
            }
        }
    }
}

fn found_lines(writer: &mut DocumentWriter<'_>, found: &Preview) {
    let (width, look) = (writer.width, writer.look);
    let mut all = person::state(found, width, look);
    all.push(TextLine::default());
    all.extend(person::who(found, HANDLES, width, look));
    all.into_iter().for_each(|line| writer.line(line));
    writer.section("rows of the person", None);
    tally::tree(&found.id, &found.tree, width, look).into_iter().for_each(|line| writer.line(line));
    writer.section("other people's rows that would change", None);
    person::changed(&found.counts, width, look).into_iter().for_each(|line| writer.line(line));
    if !found.effects.is_empty() {
        writer.section("other effects", None);
        for effect in &found.effects {
            let head = TextLine::default().with_glyph(look.glyphs.bullet, StyleRole::Muted).with(" ", StyleRole::Text);
            writer.hanging(head, &SafeText::limited(effect, 400), StyleRole::Text);
        }
    }
    let total = found.mentions.iter().map(|(_, count)| count).sum();
    writer.section("named in other people's rows", Some(total));
    person::mentioned(found, width, look).into_iter().for_each(|line| writer.line(line));
    writer.blank();
    writer.line(TextLine::of("c p", StyleRole::Key).with(" shows what erasing this person would do", StyleRole::Muted));
}
