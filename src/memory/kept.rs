//! A place that someone kept under a name: a list with its filter and its order, one row, or a screen.

use serde::{Deserialize, Serialize};

use super::Entity;

/// A saved place. What it does not say is as it is on its own.
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
    /// The filter of the list, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The order of the list, as `--order` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The name of a screen of its own kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
}

/// A filter that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFilter {
    /// Entity that the filter narrows.
    pub entity: Entity,
    /// As it was written.
    pub text: String,
}
