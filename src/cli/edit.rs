//! `edit`, `remove`, `supersede`, `merge`: any row that the layout can write.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::path::Path;

use chrono::Utc;
use clap::Args;
use serde_json::{Map, Value};

use super::doing::Doing;
use super::failure::CommandFailure;
use super::input::read_input;
use super::look::entity;
use crate::change::Operation;
use crate::memory::Entity;
use crate::memory::assign::read_value;
use crate::memory::nearest::{nearest, unknown};

/// Bytes that a value from standard input may have.
const VALUE_BYTES: u64 = 1_000_000;

/// Columns of a row to set.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Kind of row, as in `list`.
    pub entity: String,
    /// Id of the row.
    pub id: String,
    /// Canonical column and its new value: text as it is, numbers, true or false, times, JSON, lists as JSON or with
    /// commas. `null` empties it, 'null' in quotes is the word, `-` reads the value from standard input.
    #[arg(required = true, value_name = "COLUMN=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub doing: Doing,
}

/// Rows to remove.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Kind of row, as in `list`.
    pub entity: String,
    /// Their ids.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub doing: Doing,
}

/// A memory that is no longer so.
#[derive(Debug, Args)]
pub struct SupersedeArgs {
    /// Id of the memory; it stays, marked and linked to the new one.
    pub memory: String,
    /// Text that is true instead, or the id of the memory that says so; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub by: String,
    #[command(flatten)]
    pub doing: Doing,
}

/// Copies of a memory that become one with it.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The id of the memory that stays.
    pub memory: String,
    /// The ids of its copies, which are removed.
    #[arg(required = true, value_name = "COPY")]
    pub copies: Vec<String>,
    #[command(flatten)]
    pub doing: Doing,
}

impl MergeArgs {
    pub fn operation(&self) -> (Operation, &Doing) {
        (Operation::Merge { memory: self.memory.clone(), copies: self.copies.clone() }, &self.doing)
    }
}

impl EditArgs {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        let entity = entity(&self.entity)?;
        let mut set = Map::new();
        for text in &self.set {
            let (column, value) = assigned(entity, text)?;
            if set.insert(column.to_owned(), value).is_some() {
                return Err(CommandFailure::usage(format!("`{column}` is set twice")));
            }
        }
        Ok((Operation::Edit { entity, id: self.id.clone(), set, instead_of: Map::new() }, &self.doing))
    }
}

impl RemoveArgs {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        Ok((Operation::Remove { entity: entity(&self.entity)?, ids: self.ids.clone() }, &self.doing))
    }
}

impl SupersedeArgs {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        let text = if self.by == "-" { read_input(Path::new("-"), VALUE_BYTES)? } else { self.by.clone() };
        Ok((Operation::Supersede { memory: self.memory.clone(), text }, &self.doing))
    }
}

/// A column and its value out of `COLUMN=VALUE`.
fn assigned(entity: Entity, text: &str) -> Result<(&'static str, Value), CommandFailure> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| CommandFailure::usage(format!("`{text}` sets nothing: write COLUMN=VALUE")))?;
    let name = name.trim();
    let column = entity.column(name).ok_or_else(|| {
        let known: Vec<&str> = entity.columns().iter().map(|c| c.name).collect();
        match nearest(name, known.iter().copied()) {
            Some(_) => CommandFailure::usage(unknown(&format!("column of {}", entity.title()), name, known)),
            None => CommandFailure::usage(format!(
                "{} has no column `{name}`; `layouts columns {}` lists them",
                entity.title(),
                entity.name()
            )),
        }
    })?;
    let value = if value == "-" { read_input(Path::new("-"), VALUE_BYTES)? } else { value.to_owned() };
    let read = read_value(column, &value, Utc::now());
    let read = read.map_err(|what| CommandFailure::usage(format!("`{name}` takes {what}, not `{value}`")))?;
    Ok((column.name, read))
}
