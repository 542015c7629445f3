//! Details of PostgreSQL errors, and errors raised by functions, triggers, policies and foreign servers of the
//! database.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

fn about(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// The server's hint for an error.
pub(in crate::store) fn hint_of(error: &sqlx::Error) -> Option<&str> {
    about(error)?.hint()
}

/// The context of an error in the database, such as a function and its line.
pub(in crate::store) fn place_of(error: &sqlx::Error) -> Option<&str> {
    about(error)?.r#where()?.lines().next()
}

/// Whether code run by the server ended the statement: a function, trigger or policy, or a foreign server. It chooses
/// the error code, which then says nothing about our own connection and privileges. A pooler reports no routine.
pub(in crate::store) fn is_raised(error: &sqlx::Error) -> bool {
    about(error).filter(|about| matches!(about.severity(), PgSeverity::Error)).is_some_and(|about| {
        let is_of = |classes: &[&str]| classes.iter().any(|class| about.code().starts_with(class));
        is_raised_on_purpose(error)
            || is_of(&["HV", "38", "39"])
            || about.routine().is_some_and(|routine| is_of(&["08"]) || routine.starts_with("pgfdw_"))
    })
}

/// Whether a function, trigger or policy raised an error deliberately, other than a request to retry.
pub(in crate::store) fn is_raised_on_purpose(error: &sqlx::Error) -> bool {
    about(error).is_some_and(|about| {
        let passes = matches!(about.code(), "40001" | "40P01" | "55P03");
        about.code().starts_with("P0") || about.routine() == Some("exec_stmt_raise") && !passes
    })
}
