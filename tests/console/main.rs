//! The console by its public door: keys in, effects and pictures out. No terminal, no database, no clock.

mod anything;
mod changes;
mod compare;
mod doors;
mod erase;
mod erase_mentions;
mod erasure;
mod fake;
mod health;
mod home;
mod jobs;
mod kept;
mod keys;
mod lists;
mod looks;
mod prune;
mod readme;
mod recall;
mod replay;
mod studies;
mod tables;
mod tasks;
mod trail;
mod triage;
mod ui;
mod what_if;
