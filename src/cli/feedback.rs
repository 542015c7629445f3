//! `feedback`: add, edit and remove it.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::Map;

use super::doing::Doing;
use super::failure::CommandFailure;
use super::input::read_input;
use crate::change::Operation;
use crate::change::feedback::CORRECTION;
use crate::change::operation::FeedbackFields;
use crate::memory::Entity;

/// Content of a feedback row.
#[derive(Debug, Clone, Args)]
pub struct FeedbackArgs {
    /// thumbs_up, thumbs_down or rating.
    #[arg(long)]
    pub kind: Option<String>,
    /// 1 to 5, with --kind rating.
    #[arg(long, allow_negative_numbers = true)]
    pub rating: Option<i64>,
    /// Answer that the user would have wanted; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub correction: Option<String>,
    /// Person who gave the feedback [default: the episode's user].
    #[arg(long)]
    pub user: Option<String>,
}

/// Commands on feedback.
#[derive(Debug, Subcommand)]
pub enum FeedbackCommand {
    /// Add feedback to an episode.
    Add {
        /// The episode's id.
        episode: String,
        #[command(flatten)]
        fields: FeedbackArgs,
        /// Add it even if the episode has the same feedback from the same person.
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        doing: Doing,
    },
    /// Change what a feedback row says; what is not given stays.
    #[command(mut_arg("user", |user| user.help("Person who gave the feedback [default: unchanged]")))]
    Edit {
        /// Id of the feedback row.
        id: String,
        #[command(flatten)]
        fields: FeedbackArgs,
        #[command(flatten)]
        doing: Doing,
    },
    /// Remove a feedback row.
    Remove {
        /// Id of the feedback row.
        id: String,
        #[command(flatten)]
        doing: Doing,
    },
}

impl FeedbackArgs {
    fn read(&self) -> Result<FeedbackFields, CommandFailure> {
        let correction = match self.correction.as_deref() {
            Some("-") => Some(read_input(Path::new("-"), CORRECTION as u64)?),
            other => other.map(str::to_owned),
        };
        let (kind, user) = (self.kind.clone(), self.user.clone());
        Ok(FeedbackFields { kind, rating: self.rating, correction, user, ..FeedbackFields::default() })
    }
}

impl FeedbackCommand {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        let entity = Entity::Feedback;
        Ok(match self {
            FeedbackCommand::Add { episode, fields, again, doing } => {
                let fields = FeedbackFields { again: *again, ..fields.read()? };
                (Operation::AddFeedback { episode: episode.clone(), fields }, doing)
            }
            FeedbackCommand::Edit { id, fields, doing } => {
                let set = fields.read()?.values();
                (Operation::Edit { entity, id: id.clone(), set, instead_of: Map::new() }, doing)
            }
            FeedbackCommand::Remove { id, doing } => (Operation::Remove { entity, ids: vec![id.clone()] }, doing),
        })
    }
}
