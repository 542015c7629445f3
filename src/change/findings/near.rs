//! Cases of a bank that say the same in other words: compares their vectors, bank by bank.

use super::{ChangeError, FindingNews, NO_DIRECTION, Survey};
use crate::memory::Entity;
use crate::memory::findings::{BankCase, COMPARED, CaseBanks, FindingTally};
use crate::memory::prune::NEAR;
use crate::memory::vector::{dot, has_direction, unit};
use crate::store::Store;

/// The kind of finding, and the one for banks that are too large.
pub(super) const NEAR_COPY: &str = "near_duplicate_case";
pub(super) const LEFT: &str = "vector_duplicates_left";

/// Cases of small banks whose vectors are read at once.
const TOGETHER: usize = 400;

/// Cases compared between two progress reports.
const PROGRESS: usize = 500;

impl Survey<'_> {
    /// Compares the vectors of each bank, small banks together; large banks only if this kind alone is requested. Vectors
    /// that are not compared are read too, as they may have no direction.
    pub(super) async fn near_copies(&mut self, banks: &CaseBanks) -> Result<(), ChangeError> {
        if !self.wants(&[NEAR_COPY]) {
            return Ok(());
        }
        if !self.store.embeddings().has_vectors(Entity::Case) {
            self.not_applicable(&[NEAR_COPY, LEFT], "cases have no vectors here");
            return Ok(());
        }
        if self.spent {
            self.left.extend([NEAR_COPY, NO_DIRECTION]);
            return Ok(());
        }
        let largest = if self.wanted.kind == Some(NEAR_COPY) { usize::MAX } else { COMPARED };
        let mut found = FoundCases { most: self.most(), ..FoundCases::default() };
        let mut stream = banks.stream()?;
        loop {
            let cases = stream.next(largest, TOGETHER)?;
            if cases.is_empty() {
                break;
            }
            self.compare(banks, &cases, &mut found).await?;
            if self.stopped {
                return Ok(());
            }
        }
        if largest == COMPARED {
            let mut rest = stream.rest(banks)?;
            while let cases = rest.next(TOGETHER)?
                && !cases.is_empty()
                && !self.stopped
            {
                units(self.store, banks, &cases, Some(&mut found)).await?;
                self.tell(FindingNews::Read(self.read, "case"));
            }
        }
        self.found(NEAR_COPY, Some(Entity::Case), found.copies);
        self.found(NO_DIRECTION, Some(Entity::Case), found.without_direction);
        Ok(())
    }

    /// Counts the cases whose vector is close to an earlier one in their bank. At most the vectors of two parts are in
    /// memory.
    async fn compare(
        &mut self,
        banks: &CaseBanks,
        cases: &[BankCase],
        found: &mut FoundCases,
    ) -> Result<(), ChangeError> {
        for (number, part) in cases.chunks(COMPARED).enumerate() {
            let mut compared = units(self.store, banks, part, Some(found)).await?;
            for before in cases.chunks(COMPARED).take(number) {
                let before = units(self.store, banks, before, None).await?;
                self.mark(&mut compared, Some(&before)).await;
                if self.stopped {
                    return Ok(());
                }
            }
            self.mark(&mut compared, None).await;
            if self.stopped {
                return Ok(());
            }
            compared.iter().filter(|one| one.is_copy).for_each(|one| found.copies.add(&one.id, found.most));
        }
        Ok(())
    }

    /// Marks the cases that are close to one of `others`, or to an earlier one among themselves.
    async fn mark(&mut self, compared: &mut [ComparedCase], others: Option<&[ComparedCase]>) {
        for at in 0..compared.len() {
            let (own, rest) = compared.split_at_mut(at);
            let Some(case) = rest.first_mut() else { continue };
            case.is_copy = case.is_copy || others.unwrap_or(own).iter().any(|before| case.is_near(before));
            if at % PROGRESS == PROGRESS - 1 {
                self.tell(FindingNews::Read(self.read, "case"));
                if self.stopped {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Cases that were found, in the order of banks and in that of time.
#[derive(Default)]
struct FoundCases {
    most: usize,
    copies: FindingTally,
    without_direction: FindingTally,
}

/// Cases with comparable vectors; the others are reported in `found`.
async fn units(
    store: &Store,
    banks: &CaseBanks,
    cases: &[BankCase],
    mut found: Option<&mut FoundCases>,
) -> Result<Vec<ComparedCase>, ChangeError> {
    let ids = banks.ids(cases)?;
    let mut vectors = store.embeddings().vectors(Entity::Case, &ids).await?;
    let compared = |(id, case): (String, &BankCase)| {
        let vector = vectors.remove(&id)?;
        if !has_direction(&vector)
            && let Some(found) = &mut found
        {
            found.without_direction.add(&id, found.most);
        }
        Some(ComparedCase { case: *case, unit: unit(vector)?, id, is_copy: false })
    };
    Ok(ids.into_iter().zip(cases).filter_map(compared).collect())
}

/// A case while it is compared.
struct ComparedCase {
    case: BankCase,
    id: String,
    unit: Vec<f32>,
    is_copy: bool,
}

impl ComparedCase {
    fn is_near(&self, before: &ComparedCase) -> bool {
        self.case.differs(&before.case) && self.unit.len() == before.unit.len() && dot(&self.unit, &before.unit) > NEAR
    }
}
