//! `--as-of`: a list, a row or a recall as of a moment, and what is unknown about it.

use chrono::Utc;

use super::context::Session;
use super::failure::CommandFailure;
use super::options::Format;
use super::output;
use crate::change::as_of::{AsOf, Moment, view};
use crate::memory::agreeing;
use crate::store::Store;

/// The database of a command, as it was where that is asked for.
///
/// # Errors
/// Code 2 if the text is not a moment; else an error of looking at the past.
pub(super) async fn store(session: &Session<'_>, asked: Option<&str>) -> Result<(Store, Option<AsOf>), CommandFailure> {
    let moment = match asked {
        None => return Ok((session.store().await?, None)),
        Some(text) => Moment::parse(text, Utc::now()).ok_or_else(|| {
            CommandFailure::usage(format!(
                "--as-of: `{text}` is not a moment; give RFC 3339, an age such as 7d, or the number of an entry of the \
                 trail"
            ))
        })?,
    };
    let store = session.store().await?;
    let (view, as_of) = view(&store, &moment).await?;
    // Lines have no document around them that could say it.
    if session.format() != Format::Json || session.global.verbose > 0 {
        output::afterwards(format!(
            "as of {}: {}",
            as_of.at,
            agreeing(as_of.taken_back, "{#} {change is|changes are} reverted")
        ));
        as_of.unknown.iter().for_each(|words| output::afterwards(format!("not known: {words}")));
    }
    Ok((view, Some(as_of)))
}
