//! `--as-of`: a list, a row or a recall as of a moment, and what is unknown about it.

use chrono::Utc;

use super::{CommandFailure, Format, Session, output};
use crate::change::as_of::{AsOf, Moment, view};
use crate::memory::agreeing;
use crate::store::Store;

/// Reads the value of `--as-of`.
///
/// # Errors
/// Code 2 if the text is not a moment.
pub(super) fn moment(asked: Option<&str>) -> Result<Option<Moment>, CommandFailure> {
    let parsed = |text: &str| {
        Moment::parse(text, Utc::now()).ok_or_else(|| {
            CommandFailure::usage(format!(
                "--as-of: `{text}` is not a moment; give RFC 3339, an age such as 7d, or the number of an entry of the \
                 trail"
            ))
        })
    };
    asked.map(parsed).transpose()
}

/// The database of a command, as it was where that is asked for.
///
/// # Errors
/// An error of opening the database, or of looking at the past.
pub(super) async fn store(
    session: &Session<'_>,
    moment: Option<&Moment>,
) -> Result<(Store, Option<AsOf>), CommandFailure> {
    let store = session.store().await?;
    let Some(moment) = moment else { return Ok((store, None)) };
    let (view, as_of) = view(&store, moment).await?;
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

/// The same past a damaged page, once an answer that is printed as it is read meets one.
///
/// # Errors
/// As [`Session::past`]; else as [`store`].
pub(super) async fn past(
    session: &Session<'_>,
    failure: CommandFailure,
    moment: Option<&Moment>,
) -> Result<Store, CommandFailure> {
    let store = session.past(failure).await?;
    match moment {
        Some(moment) => Ok(view(&store, moment).await?.0),
        None => Ok(store),
    }
}
