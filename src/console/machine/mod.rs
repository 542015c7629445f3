//! The machine: the whole model, and the one function that handles every message. It knows every screen and overlay;
//! none of them knows it.

mod act;
mod ask;
mod change;
mod commands;
mod copies;
mod early;
mod frame;
mod history;
mod kept;
mod model;
mod painter;
mod past;
mod place;
mod session;
mod switch;
mod update;
mod write;

pub use commands::THEMES;
pub use history::History;
pub use model::Model;
pub use painter::Painter;
pub use place::ScreenPlace;
pub use update::update;
