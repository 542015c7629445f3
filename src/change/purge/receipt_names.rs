//! Names of tables, columns and files that contain a handle: a receipt shows their position instead.

use std::cmp::Reverse;
use std::path::Path;

use super::owners::known_tables;
use super::receipt::PurgeReceipt;
use super::scan::is_named_in;
use super::subject::PurgeSubject;
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::store::{Store, own};

/// Names that contain a handle, each with its replacement.
#[derive(Debug, Default)]
pub(super) struct TellingNames {
    handles: Vec<String>,
    names: Vec<(String, String)>,
}

impl TellingNames {
    /// Collects the names of a database, without those of the layout's tables and our own, which are the same
    /// everywhere. A handle that is a common word does not count.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn of(store: &Store, subject: &PurgeSubject) -> Result<Self, ChangeError> {
        let handles = subject.searched().filter(|handle| handle.common.is_none());
        let mut all = TellingNames { handles: handles.map(|h| h.value.to_lowercase()).collect(), names: Vec::new() };
        if store.engine() == Engine::Sqlite {
            [store.place(), store.location()].into_iter().for_each(|path| all.add_path(Path::new(path)));
        }
        let known = known_tables(store);
        let is_known = |name: &str| own::TABLES.contains(&name) || known.iter().any(|table| table.name == name);
        for (number, object) in store.snapshot().await?.definitions().await?.iter().enumerate() {
            if !is_known(object.name.rsplit_once('.').map_or(&*object.name, |(_, name)| name)) {
                all.add(&object.name, &object.kind, number);
            }
        }
        for (number, table) in store.catalog().tables.iter().enumerate().filter(|(_, table)| !is_known(&table.name)) {
            all.add(&table.name, "table", number);
            for (number, column) in table.columns.iter().enumerate() {
                all.add(&column.name, "column", number);
            }
        }
        // A name may be part of another, so the longest comes first.
        all.names.sort_by_key(|(name, _)| Reverse(name.len()));
        Ok(all)
    }

    fn add(&mut self, name: &str, kind: &str, number: usize) {
        if self.hold(name) && !self.names.iter().any(|(known, _)| known == name) {
            self.names.push((name.to_owned(), format!("[{kind} {}]", number + 1)));
        }
    }

    /// A database file is listed by its name, as its hits are; the folders may contain anybody's name.
    fn add_path(&mut self, path: &Path) {
        let name = file_name(path);
        let shown = if self.hold(&name) { "[file 1]".to_owned() } else { name.clone() };
        self.names.push((path.display().to_string(), shown));
        let folder = path.parent().filter(|folder| folder.is_absolute() && folder.parent().is_some());
        self.names.extend(folder.map(|folder| (folder.display().to_string(), "its folder".to_owned())));
        self.add(&name, "file", 0);
    }

    fn hold(&self, name: &str) -> bool {
        let small = name.to_lowercase();
        self.handles.iter().any(|handle| is_named_in(&small, handle))
    }

    /// Replaces the names in a receipt.
    pub fn leave(&self, receipt: &mut PurgeReceipt) {
        let PurgeReceipt { effects, disclosures, incomplete, findings, notes, counts, verification, .. } = receipt;
        let sentences = [effects, disclosures, incomplete, notes].into_iter().flatten();
        let found = findings.iter_mut().map(|finding| &mut finding.what);
        let unchecked = verification.bytes.reason.iter_mut();
        for words in sentences.chain(found).chain(unchecked) {
            self.names.iter().for_each(|(name, instead)| put(words, name, instead));
        }
        let kept = std::mem::take(counts);
        counts.extend(kept.into_iter().map(|(table, verbs)| (self.table(table), verbs)));
        for (number, file) in verification.bytes.files.iter_mut().enumerate() {
            // The folders of a path may contain anybody's name.
            let name = file_name(Path::new(&file.path));
            file.path = if self.hold(&name) { format!("[file {}]", number + 1) } else { name };
        }
    }

    fn table(&self, mut title: String) -> String {
        self.names.iter().for_each(|(name, instead)| put(&mut title, name, instead));
        title
    }
}

/// Replaces a name where it is not part of a longer word.
fn put(words: &mut String, name: &str, instead: &str) {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let mut from = 0;
    while let Some(at) = words.get(from..).and_then(|rest| rest.find(name)).map(|at| from + at) {
        from = at + name.len();
        if is_edge(words[..at].chars().next_back()) && is_edge(words[from..].chars().next()) {
            words.replace_range(at..from, instead);
            from = at + instead.len();
        }
    }
}

fn file_name(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_name() {
        let mut names = TellingNames { handles: vec!["ana".to_owned()], names: Vec::new() };
        names.add_path(Path::new("/srv/ana/memory.db"));
        let incomplete = vec!["/srv/ana/memory.db-wal: denied".to_owned(), "no room in /srv/ana".to_owned()];
        let mut receipt = PurgeReceipt { incomplete, ..PurgeReceipt::default() };
        names.leave(&mut receipt);
        assert_eq!(receipt.incomplete, ["memory.db-wal: denied", "no room in its folder"]);
    }

    #[test]
    fn a_name_is_left_out_of_no_other_word() {
        let mut words = "ana.ana: 1 value; analyse notes_ana_pkey".to_owned();
        put(&mut words, "ana", "[table 1]");
        assert_eq!(words, "[table 1].[table 1]: 1 value; analyse notes_[table 1]_pkey");
    }
}
