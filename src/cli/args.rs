//! The command line: its commands, options and their help.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::console::Look;
use super::demo::DemoArgs;
use super::layouts::LayoutCommand;
use super::look::Selection;
use super::options::{Global, at_least_one};
use super::queries::QueriesCommand;
use super::raw::RawSelection;
use crate::memory::Entity;
use crate::store::own;

/// Heading of the options that every command takes, so that its own are together before them.
const EVERYWHERE: &str = "Options of every command";

/// Text of `--version`: the number, the source, the target, and the built-in engines.
pub(super) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("BUILD_SOURCE"), ", ", env!("BUILD_TARGET"), ", sqlite, postgres)");

/// Inspect and administer the memory databases of AI agents.
#[derive(Debug, Parser)]
#[command(name = "mnemoscope", version = VERSION, about, args_conflicts_with_subcommands = false)]
pub struct Cli {
    /// Database: a path, a palace folder, sqlite:PATH, postgres://…, host=… and so on, or a profile's name.
    #[arg(short = 'd', long = "database", global = true, value_name = "DATABASE", help_heading = EVERYWHERE)]
    pub database: Option<String>,
    /// The same, to open the console: `mnemoscope DATABASE`.
    #[arg(value_name = "DATABASE")]
    pub positional: Option<String>,
    /// Options for every command.
    #[command(flatten, next_help_heading = EVERYWHERE)]
    pub global: Global,
    /// Command to run [default: the console].
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open the console.
    Console {
        /// Database to open.
        #[arg(id = "opened", value_name = "DATABASE")]
        database: Option<String>,
        /// Options for the look of the console.
        #[command(flatten)]
        look: Look,
    },
    /// Make a realistic demo database and open it.
    Demo {
        /// The story that it tells, and where.
        #[command(flatten)]
        story: DemoArgs,
        /// Create it without opening it.
        #[arg(long, conflicts_with_all = ["theme", "ascii", "no_mouse", "plain"])]
        no_console: bool,
        /// Options for the look of the console.
        #[command(flatten)]
        look: Look,
    },
    /// Show what the database is, which layouts fit, and what can be shown.
    Status {
        /// Show the sizes of an SQLite database's tables too; reads every page of it.
        #[arg(long)]
        sizes: bool,
    },
    /// List the rows of an entity.
    List {
        /// agent, subject, episode, segment, canvas_event, feedback, utility_event, memory, memory_link, profile, case,
        /// policy, workflow_event, access or audit_entry.
        entity: String,
        /// Choice and order of the rows.
        #[command(flatten)]
        selection: Selection,
        /// Maximum number of rows [default: 50; all with --format jsonl or csv].
        #[arg(long)]
        limit: Option<usize>,
        /// Continue after this cursor: `next` of the previous page in JSON, or what -v prints below a table.
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
        /// Print the newest 50 rows, or --limit, and then new rows as they are written, as JSON lines: those with a later time,
        /// and of others those that come among the newest 500.
        #[arg(long, conflicts_with = "as_of")]
        follow: bool,
        /// As the database was: a time, an age such as 7d, or just after an entry of the audit trail.
        #[arg(long, value_name = "TIME|SEQ")]
        as_of: Option<String>,
    },
    /// List the tables and views of any database, whether a layout knows them or not.
    Tables,
    /// Page through the rows of a table or view as they are stored: JSON decoded, blobs and vectors by their first bytes.
    Table {
        /// Name of the table or view, with the schema where needed.
        name: String,
        /// Choice and order of the rows.
        #[command(flatten)]
        selection: RawSelection,
    },
    /// Show one row with everything about it.
    Show {
        /// Kind of row, as in `list`.
        entity: String,
        /// Id of the row.
        id: String,
        /// As the database was: a time, an age such as 7d, or just after an entry of the audit trail.
        #[arg(long, value_name = "TIME|SEQ")]
        as_of: Option<String>,
    },
    /// Show the chain that an episode belongs to, root first.
    Chain {
        /// The episode's id.
        episode: String,
        /// Suggest parents instead: same agent, ended within the 48 h before it started, cosine above 0.85.
        #[arg(long)]
        suggest_parents: bool,
    },
    /// Show what would be recalled in a situation, with each score explained.
    Recall(super::recall::RecallArgs),
    /// Print the text that an agent would get from what is recalled.
    Context {
        /// Question of the recall, and its ranking.
        #[command(flatten)]
        recall: super::recall::RecallArgs,
        /// Maximum number of tokens of the text, at roughly four characters each.
        #[arg(long, default_value_t = crate::recall::context::TOKENS)]
        tokens: usize,
        /// Maximum number of tokens of each row [default: an equal share].
        #[arg(long, value_name = "N")]
        tokens_per_row: Option<usize>,
    },
    /// List the saved recall questions.
    Queries {
        /// Action on the saved questions; without one they are listed.
        #[command(subcommand)]
        command: Option<QueriesCommand>,
    },
    /// Show the history of a topic: its most relevant episodes in the order in which they happened.
    Replay {
        /// The topic.
        topic: String,
        /// This agent only.
        #[arg(long)]
        agent: Option<String>,
        /// Maximum number of episodes, up to 5,000.
        #[arg(long, default_value_t = crate::lab::replay::LIMIT, value_parser = at_least_one())]
        limit: usize,
    },
    /// Show what people do with canvases, what is forgotten, which memories mislead and which help.
    Insights {
        /// This agent only.
        #[arg(long)]
        agent: Option<String>,
    },
    /// Show the quality, interventions and readiness of an agent, by the documented and the coded formula.
    Graduation {
        /// The agent's id.
        agent: String,
    },
    /// Judge recall: hit rate, precision, nDCG and MRR, self-retrieval, nonsense, coverage, swamping, age, latency.
    #[command(after_help = crate::recall::judge::file::SHAPE)]
    Evaluate(super::evaluate::EvaluateArgs),
    /// List what is wrong or suspicious, each with the command that fixes it.
    #[command(after_long_help = super::findings::kinds())]
    Findings(super::findings::Findings),
    /// Print a JSON Schema: `schema episode`, `schema plan`.
    Schema(super::schema::Schema),
    /// Show two rows of a kind field by field, their texts as word diffs: `compare episode ID ID`.
    Compare(super::compare::Compare),
    /// Search for words in titles, summaries, segments, feedback, cases and memories: `find 'late loads'`.
    Find(super::find::Find),
    /// List the known layouts; show, draft or check one.
    Layouts {
        /// Action on layouts; without one they are listed.
        #[command(subcommand)]
        command: Option<LayoutCommand>,
    },
    /// Write all rows of entities as JSON lines; `export subject SUBJECT` writes everything that is stored about a
    /// person.
    Export {
        /// Entities; or `subject` and a person's id, e-mail or name.
        #[arg(required = true)]
        entities: Vec<String>,
        /// New folder for a person's bundle: one file for each table, and a manifest.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Choice and order of the rows.
        #[command(flatten)]
        selection: Selection,
    },
    /// Change something: a plan is printed, and executed with --apply.
    #[command(flatten)]
    Change(super::change::ChangeCommand),
    /// List the backfills, plan or run one, or pause, resume or cancel one.
    Backfill(super::backfill::Backfill),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

fn is_of_trail(entity: &str) -> bool {
    Entity::parse(entity).is_some_and(Entity::is_of_trail)
}

impl Command {
    /// Whether the command shows what is there and changes nothing, so that damaged pages are read past. A test of
    /// a layout needs all rows; the console and the demo open their databases by themselves.
    pub fn looks(&self) -> bool {
        match self {
            Command::Console { .. }
            | Command::Demo { .. }
            | Command::Layouts { command: Some(LayoutCommand::Test { .. }) } => false,
            Command::Change(command) => command.looks(),
            Command::Backfill(asked) => !asked.names_one(),
            _ => true,
        }
    }

    /// Whether the command looks at rows as they are and at nothing else, so that a standby will do. The trail is read where it
    /// is written: a standby that is behind would look like a trail that was cut. So is what a person is given of their data.
    pub fn suits_standby(&self) -> bool {
        match self {
            Command::List { entity, as_of, .. } | Command::Show { entity, as_of, .. } => {
                as_of.is_none() && !is_of_trail(entity)
            }
            Command::Recall(recall) | Command::Context { recall, .. } => recall.as_of.is_none(),
            Command::Export { entities, .. } => !entities.iter().any(|name| name == "subject" || is_of_trail(name)),
            Command::Compare(compare) => !is_of_trail(&compare.entity),
            Command::Table { name, .. } => !own::is_of_trail(name),
            Command::Tables
            | Command::Chain { .. }
            | Command::Replay { .. }
            | Command::Insights { .. }
            | Command::Graduation { .. }
            | Command::Evaluate(_)
            | Command::Find(_) => true,
            _ => false,
        }
    }
}
