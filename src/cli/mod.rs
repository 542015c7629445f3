//! The headless twins of the console: standard output is data, standard error is words, exit codes are a contract.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

pub mod args;
mod as_of;
mod audit;
mod backfill;
mod bank;
mod change;
mod columns;
mod compare;
mod console;
mod context;
mod copy;
mod demo;
mod document;
pub mod doing;
mod edit;
mod evaluate;
mod failure;
mod feedback;
mod find;
mod findings;
mod fleet;
mod follow;
mod hints;
mod import;
mod ink;
mod input;
mod insights;
mod jobs;
mod layout_test;
mod layouts;
mod lines;
mod log;
mod look;
pub mod man;
mod migrate;
mod options;
mod output;
mod part_totals;
mod person;
mod policy;
mod progress;
mod purge;
mod queries;
mod raw;
mod recall;
mod recalled;
mod replay;
mod retain;
mod schema;
mod shown;
mod signal;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::{CommandFactory as _, Parser as _, ValueEnum as _};

use crate::config::{self, Config};
use crate::ground::open_files;
use crate::ground::unfinished::EndWithoutRemains;
use crate::memory::nearest::nearest;
use args::{Cli, Command};
use context::{Damage, Session};
use failure::CommandFailure;
use options::Format;

/// Runs the program on the command line's arguments.
pub fn main() -> ExitCode {
    let (outcome, as_json) = match parsed() {
        Ok(cli) => {
            output::speak(&cli.global);
            (logged(&cli), cli.global.format.is_some_and(Format::is_json))
        }
        // Help and version contain only our own words.
        Err(answer) if !answer.use_stderr() => (output::is_read(answer.print()).map(drop), false),
        Err(wrong) => {
            let format = asked_format();
            let words = failure::parser_words(&wrong, &Cli::command(), &typed().collect::<Vec<_>>());
            match misspelt(&wrong) {
                None if !format.is_some_and(Format::is_json) => {
                    veil_words();
                    failure::say("", &words);
                    return ExitCode::from(2);
                }
                found => (
                    Err(found.unwrap_or_else(|| CommandFailure::of_parser(&words))),
                    format.is_some_and(Format::is_json),
                ),
            }
        }
    };
    progress::end();
    match outcome {
        Ok(()) => {
            // An empty answer printed nothing that could trigger these.
            output::say_afterwards();
            output::held().iter().for_each(|words| failure::say("", words));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            veil_words();
            output::say_afterwards();
            failure.tell(as_json);
            ExitCode::from(failure.code)
        }
    }
}

/// Prepares the hiding of handles if values are masked and a command failed before it opened the database: reads the
/// handles that the error message may repeat. A database that cannot be opened has none.
fn veil_words() {
    if output::is_veiled() || open_files::check_room().is_err() {
        return;
    }
    let Ok(config) = config::load() else { return };
    let Some(asked) = asked_globals() else { return };
    // The layout or the profile may be the reason for the failure.
    let bare = asked
        .database
        .as_ref()
        .and_then(|name| Cli::try_parse_from(["mnemoscope", "--mask", "-qd", name, "status"]).ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let (Some(_), Ok(runtime)) = (session(&asked, &config).mask(), runtime) {
        let _ = [Some(&asked), bare.as_ref()]
            .into_iter()
            .flatten()
            .any(|cli| runtime.block_on(session(cli, &config).store()).is_ok());
    }
}

fn command_names() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// The session of a command that changes nothing.
fn session<'a>(cli: &'a Cli, config: &'a Config) -> Session<'a> {
    Session {
        global: &cli.global,
        commands: command_names,
        database: cli.database.as_deref(),
        config,
        changes: false,
        looks: false,
        suits_standby: false,
        damage: Damage::default(),
    }
}

/// Parses the global options about the database and masking, even if the rest of the command line is invalid.
fn asked_globals() -> Option<Cli> {
    let matches = Cli::command().ignore_errors(true).try_get_matches().ok()?;
    let mut deepest = &matches;
    while let Some((_, inner)) = deepest.subcommand() {
        deepest = inner;
    }
    let said = |name: &str| deepest.try_get_one::<String>(name).ok().flatten();
    let masks = deepest.try_get_one::<bool>("mask").ok().flatten() == Some(&true);
    let layouts = deepest.try_get_many::<String>("layout").ok().flatten().into_iter().flatten();
    let mut words = vec!["mnemoscope".to_owned(), "--quiet".to_owned()];
    words.extend(masks.then(|| "--mask".to_owned()));
    let database = said("database").or_else(|| said("opened")).or_else(|| matches.get_one("positional"));
    words.extend(database.map(|name| format!("--database={name}")));
    words.extend(said("profile").map(|name| format!("--profile={name}")));
    words.extend(layouts.map(|name| format!("--layout={name}")));
    words.push("status".to_owned());
    Cli::try_parse_from(words).ok()
}

/// The words of the command line that are valid text.
fn typed() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// Parses the command line. Without a command it opens the console, whose options are added then.
fn parsed() -> Result<Cli, clap::Error> {
    Cli::try_parse().or_else(|wrong| {
        let is_option = wrong.kind() == clap::error::ErrorKind::UnknownArgument;
        let words = std::env::args_os().skip(1);
        let console = [OsString::from("mnemoscope"), OsString::from("console")].into_iter().chain(words);
        if is_option { Cli::try_parse_from(console).map_err(|_| wrong) } else { Err(wrong) }
    })
}

/// The requested format of an invalid command line.
fn asked_format() -> Option<Format> {
    let words: Vec<String> = typed().collect();
    let following = words.windows(2).filter(|pair| pair[0] == "--format").map(|pair| pair[1].as_str());
    let mut asked: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("--format=")).collect();
    asked.extend(following);
    asked.last().and_then(|name| Format::from_str(name, true).ok())
}

/// The failure of a command line whose first word is not a command.
fn misspelt(wrong: &clap::Error) -> Option<CommandFailure> {
    use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
    if !matches!(wrong.kind(), UnknownArgument | InvalidSubcommand) {
        return None;
    }
    let matches = Cli::command().ignore_errors(true).try_get_matches().ok()?;
    let word = matches.get_one::<String>("positional").filter(|_| matches.subcommand().is_none())?;
    (!std::path::Path::new(word).exists()).then(|| CommandFailure::usage(no_command(word)))
}

/// Formats the message about an unknown command, with the nearest one.
fn no_command(word: &str) -> String {
    let known = Cli::command();
    let near = nearest(word, known.get_subcommands().map(clap::Command::get_name));
    let hint = near.map_or("; `mnemoscope help` lists them".to_owned(), |n| format!("; did you mean `{n}`?"));
    format!("there is no command `{word}`{hint}")
}

/// Runs a command, and logs its time and result. Arguments may name people: they are not logged.
fn logged(cli: &Cli) -> Result<(), CommandFailure> {
    log::start(&cli.global)?;
    let began = Instant::now();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "started");
    let outcome = run(cli);
    let (code, error) = outcome.as_ref().err().map_or((0, "none"), |failure| (failure.code, failure.word()));
    tracing::info!(code, error, milliseconds = began.elapsed().as_millis() as u64, "ended");
    outcome
}

fn run(cli: &Cli) -> Result<(), CommandFailure> {
    if cli.command.is_some() && cli.positional.is_some() {
        return Err(CommandFailure::usage("name the database of a command with -d: mnemoscope -d DATABASE COMMAND"));
    }
    if let (Some(word), Some(_), None) = (&cli.positional, &cli.database, &cli.command) {
        return Err(CommandFailure::usage(no_command(word)));
    }
    match &cli.command {
        Some(Command::Completions { shell }) => {
            // Not written straight into the pipe: the generator panics if that is closed.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut completed(), "mnemoscope", &mut script);
            return output::piped(|out| out.write_all(&script));
        }
        Some(Command::Man) => return output::piped(|out| man::render(&Cli::command(), out)),
        _ => {}
    }
    // Without them the runtime panics.
    open_files::check_room().map_err(|error| CommandFailure {
        remedy: Some("let this process open more files, as by `ulimit -n 1024`".to_owned()),
        ..CommandFailure::failed(format!("the files that a command needs cannot be opened: {error}"))
    })?;
    let config = config::load().map_err(|e| CommandFailure::usage(format!("{e:#}")))?;
    if let (Some(word), None) = (&cli.positional, &cli.command) {
        check_meant(word, &config)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| CommandFailure::failed(format!("the runtime did not start: {e}")))?;
    let _without_remains = ends_at_once(cli.command.as_ref()).then(EndWithoutRemains::begin);
    let outcome = runtime.block_on(dispatch(cli, &config));
    // A read that was broken off need not be waited for.
    runtime.shutdown_background();
    outcome
}

/// The program for shell completions, without the database before a command, which zsh would confuse with the command.
fn completed() -> clap::Command {
    let whole = Cli::command();
    let options = whole.get_arguments().filter(|arg| !arg.is_positional()).cloned();
    let program = clap::Command::new("mnemoscope").version(args::VERSION).args(options);
    program.subcommands(whole.get_subcommands().cloned())
}

/// Whether a signal ends a command at once. The console and running jobs handle signals themselves, and so does a demo
/// that opens the console.
fn ends_at_once(command: Option<&Command>) -> bool {
    match command {
        None | Some(Command::Console { .. } | Command::Demo { .. } | Command::Backfill(_)) => false,
        Some(Command::Change(asked)) => !matches!(asked, change::ChangeCommand::Jobs { .. }),
        Some(_) => true,
    }
}

/// Refuses a single word that names no database but resembles a command or a profile.
fn check_meant(word: &str, config: &Config) -> Result<(), CommandFailure> {
    let is_named = config.profile.contains_key(word) || std::path::Path::new(word).exists();
    if is_named || word.contains(['/', '.', ':']) {
        return Ok(());
    }
    match nearest(word, command_names().iter().chain(config.profile.keys()).map(String::as_str)) {
        Some(near) => Err(CommandFailure::usage(format!(
            "there is neither a database nor a command `{word}`; did you mean `{near}`?"
        ))),
        None => Ok(()),
    }
}

async fn dispatch(cli: &Cli, config: &Config) -> Result<(), CommandFailure> {
    let changes = match &cli.command {
        Some(Command::Change(command)) => command.changes(),
        Some(Command::Backfill(asked)) => asked.names_one(),
        _ => false,
    };
    let looks = cli.command.as_ref().is_some_and(Command::looks);
    let suits_standby = cli.command.as_ref().is_some_and(Command::suits_standby);
    let session = Session { changes, looks, suits_standby, ..session(cli, config) };
    if changes && session.format() == Format::Csv {
        // Nothing may be done whose receipt cannot be printed.
        return Err(output::no_table());
    }
    match run_command(cli, &session).await {
        // These name their databases by themselves.
        Err(failure) if !matches!(cli.command, Some(Command::Change(change::ChangeCommand::Copy(_)))) => {
            if !output::has_begun() && session.meets(&failure) {
                let outcome = run_command(cli, &session).await;
                // Of a row that is not found nobody knows whether it is on a damaged page.
                if outcome.is_ok() || output::has_begun() {
                    return outcome.and_then(|()| session.complete());
                }
                session.damage.is_met.store(false, Ordering::Relaxed);
            }
            Err(session.named_damage(failure).await)
        }
        outcome => outcome.and_then(|()| session.complete()),
    }
}

async fn run_command(cli: &Cli, session: &Session<'_>) -> Result<(), CommandFailure> {
    match &cli.command {
        None => console::open(session, cli.positional.as_deref(), &console::Look::default()).await,
        Some(Command::Console { database, look }) => console::open(session, database.as_deref(), look).await,
        Some(Command::Demo { story, no_console, look }) => {
            if cli.database.is_some() {
                return Err(CommandFailure::usage("`demo` makes a database: name its file by `demo PATH`, without -d"));
            }
            let path = demo::make(story, &cli.global).await?;
            if *no_console {
                return Ok(());
            }
            console::open(session, Some(&path.display().to_string()), look).await
        }
        Some(Command::Status { sizes }) => look::status(session, *sizes).await,
        Some(Command::List { entity, selection, limit, after, follow: true, .. }) => {
            follow::run(session, entity, selection, *limit, after.as_deref()).await
        }
        Some(Command::List { entity, selection, limit, after, as_of, .. }) => {
            look::list(session, entity, selection, *limit, after.as_deref(), as_of.as_deref()).await
        }
        Some(Command::Tables) => raw::tables(session).await,
        Some(Command::Table { name, selection }) => raw::table(session, name, selection).await,
        Some(Command::Show { entity, id, as_of }) => look::show(session, entity, id, as_of.as_deref()).await,
        Some(Command::Insights { agent }) => insights::insights(session, agent.as_deref()).await,
        Some(Command::Graduation { agent }) => insights::graduation(session, agent).await,
        Some(Command::Evaluate(args)) => evaluate::run(session, args).await,
        Some(Command::Findings(asked)) => findings::run(session, asked).await,
        Some(Command::Schema(asked)) => schema::run(session, asked),
        Some(Command::Compare(asked)) => compare::run(session, asked).await,
        Some(Command::Find(asked)) => find::run(session, asked).await,
        Some(Command::Chain { episode, suggest_parents: true }) => recall::parents(session, episode).await,
        Some(Command::Chain { episode, .. }) => look::chain(session, episode).await,
        Some(Command::Queries { command }) => queries::run(session, command.as_ref()).await,
        Some(Command::Recall(args)) => recall::recall(session, args).await,
        Some(Command::Context { recall, tokens, tokens_per_row }) => {
            recall::context(session, recall, *tokens, *tokens_per_row).await
        }
        Some(Command::Replay { topic, agent, limit }) => replay::run(session, topic, agent.as_deref(), *limit).await,
        Some(Command::Layouts { command }) => layouts::run(session, command.as_ref()).await,
        Some(Command::Export { entities, out, selection }) => {
            look::export(session, entities, selection, out.as_deref()).await
        }
        Some(Command::Change(command)) => change::run(session, command).await,
        Some(Command::Backfill(asked)) => backfill::run(session, asked).await,
        Some(Command::Completions { .. } | Command::Man) => Ok(()),
    }
}
