//! Interfaces for screens and overlays: their context, requests, replies and traits, commands and keys, and plain data
//! of the session. Pure: nothing here does I/O, waits or reads a clock.

pub mod change;
pub mod columns;
pub mod command;
pub mod condition;
pub mod context;
pub mod fetched;
pub mod gate;
pub mod glossary;
pub mod health;
pub mod input;
pub mod jobs;
pub mod key;
pub mod key_map;
pub mod layer;
pub mod list_cursor;
pub mod live;
pub mod masking;
pub mod menu;
pub mod message;
pub mod names;
pub mod opened;
pub mod proposal;
pub mod request;
pub mod router;
pub mod screen;
pub mod screen_kind;
pub mod text;
pub mod ticket;
pub mod twin;
pub mod what_if;
pub mod window;
pub mod zone;

pub use command::{COMMANDS, CommandId};
pub use context::{ConsoleSettings, OpenedDatabase};
pub use key::{Code, Key};
pub use message::{ClickTarget, Destination, EditorEnd, Effect, Measures, Message, RequestFailure, Ticket};
pub use proposal::Proposal;
pub use request::{Reply, Request};
