//! A named place to return to: a list with its filter and order, one row, or a screen.

use serde::{Deserialize, Serialize};

use super::Entity;

/// A saved place. Missing fields have the place's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptPlace {
    /// Name of the place.
    pub name: String,
    /// Entity of the list or of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<Entity>,
    /// The row's id; none for a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The filter of the list, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The order of the list, in the form of `--order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Name of a screen other than a list or a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
}

/// A filter as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFilter {
    /// Entity that it filters.
    pub entity: Entity,
    /// Text of the filter.
    pub text: String,
}
