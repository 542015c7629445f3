//! Errors as PostgreSQL tells about them, and those that functions, triggers, policies and foreign servers of the database
//! raise.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

fn about(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// The server's own advice next to an error.
pub(in crate::store) fn hint_of(error: &sqlx::Error) -> Option<&str> {
    about(error)?.hint()
}

/// The place in the database that an error names, such as a function and a line of it.
pub(in crate::store) fn place_of(error: &sqlx::Error) -> Option<&str> {
    about(error)?.r#where()?.lines().next()
}

/// Whether something that the server runs ended the statement: a function, trigger or policy that raises, or a foreign server.
/// They choose the code, which tells nothing of our own connection and rights then. A pooler names no routine.
pub(in crate::store) fn is_raised(error: &sqlx::Error) -> bool {
    about(error).filter(|about| matches!(about.severity(), PgSeverity::Error)).is_some_and(|about| {
        let is_of = |classes: &[&str]| classes.iter().any(|class| about.code().starts_with(class));
        is_raised_on_purpose(error)
            || is_of(&["HV", "38", "39"])
            || about.routine().is_some_and(|routine| is_of(&["08"]) || routine.starts_with("pgfdw_"))
    })
}

/// Whether a function, trigger or policy raises an error on purpose, other than one that says to try again.
pub(in crate::store) fn is_raised_on_purpose(error: &sqlx::Error) -> bool {
    about(error).is_some_and(|about| {
        let passes = matches!(about.code(), "40001" | "40P01" | "55P03");
        about.code().starts_with("P0") || about.routine() == Some("exec_stmt_raise") && !passes
    })
}
