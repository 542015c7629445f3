//! A count with its first examples.

/// How often something was found, with the first ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The first ids, at most as many as [`Tally::add`] was told.
    pub examples: Vec<String>,
}

impl Tally {
    /// One more; its id is kept while fewer than `most` are.
    pub fn add(&mut self, id: &str, most: usize) {
        self.count += 1;
        if self.examples.len() < most {
            self.examples.push(id.to_owned());
        }
    }

    /// A tally of these.
    #[must_use]
    pub fn of(ids: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> Self {
        let mut tally = Tally::default();
        ids.into_iter().for_each(|id| tally.add(id.as_ref(), most));
        tally
    }
}
