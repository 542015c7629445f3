//! A layout that extends a shipped one: its own definitions, and those of the other for the rest.

use super::Layout;
use super::erase::EraseRule;

impl Layout {
    /// Adds the definitions of another layout that this one lacks. An entity mapped here replaces the other's, and so
    /// do the rules of a table.
    pub(super) fn over(mut self, base: Layout) -> Layout {
        fn or<T>(own: &mut Vec<T>, other: Vec<T>) {
            if own.is_empty() {
                *own = other;
            }
        }
        or(&mut self.requires, base.requires);
        or(&mut self.forbids, base.forbids);
        or(&mut self.variants, base.variants);
        or(&mut self.attach, base.attach);
        or(&mut self.patterns, base.patterns);
        or(&mut self.handles, base.handles);
        or(&mut self.follows, base.follows);
        or(&mut self.unowned, base.unowned);
        or(&mut self.elsewhere, base.elsewhere);
        or(&mut self.never_recalled, base.never_recalled);
        self.folder = self.folder.or(base.folder);
        self.account = self.account.or(base.account);
        self.recalled = self.recalled.or(base.recalled);
        let mapped: Vec<_> = self.sources.iter().map(|source| source.entity).collect();
        self.sources.extend(base.sources.into_iter().filter(|source| !mapped.contains(&source.entity)));
        self.absent.extend(base.absent.into_iter().filter(|(entity, _)| !mapped.contains(entity)));
        let ruled: Vec<_> = self.rules.iter().map(|rule| rule.table.clone()).collect();
        let others = base.rules.into_iter().filter(|rule| !ruled.contains(&rule.table));
        self.rules.extend(others.map(|rule| EraseRule { line: 0, ..rule }));
        self
    }
}
