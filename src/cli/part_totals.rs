//! Totals over the parts of a change that is too large for one plan.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure::CommandFailure;
use crate::change::plan::{Counts, Receipt};
use crate::change::{Plan, anchor};
use crate::memory::{agreeing, thousands};
use crate::store::Store;

/// Totals of plans and receipts, each of a part.
#[derive(Debug, Default)]
pub struct PartTotals {
    pub parts: usize,
    /// Rows by table and verb.
    pub counts: Counts,
    pub changes: usize,
    /// Receipts of the parts that changed anything: id, number in the audit trail and undo.
    pub receipts: Vec<Value>,
    /// Disclosures without their leading number, and the sum of these numbers; `None` if they have none.
    disclosures: BTreeMap<String, Option<u64>>,
}

impl PartTotals {
    pub fn add(&mut self, plan: &Plan) {
        self.parts += 1;
        for (table, verbs) in &plan.counts {
            for (verb, rows) in verbs {
                *self.counts.entry(table.clone()).or_default().entry(verb.clone()).or_default() += rows;
            }
        }
        self.changes += plan.changes_total;
        plan.disclosures.iter().for_each(|sentence| self.disclose(sentence));
    }

    /// Adds the receipt of a part, and whether its anchor could be stored.
    pub async fn add_receipt(&mut self, receipt: &Receipt, store: &Store) {
        if let Some(missed) = anchor::missed(store).await {
            self.disclose(&missed);
        }
        if receipt.audit_seq.is_some() {
            self.receipts.push(
                json!({ "receipt_id": receipt.receipt_id, "audit_seq": receipt.audit_seq, "undo": receipt.undo }),
            );
        }
    }

    /// Turns the failure of a part into that of the whole; it says that earlier parts are done.
    pub fn stopped(&self, failure: CommandFailure, rest: &str) -> CommandFailure {
        let standing = agreeing(
            self.receipts.len() as u64,
            "{#} earlier {part is imported and stays: its receipt says how to undo it|parts are imported and stay: \
             their receipts say how to undo them, newest first}",
        );
        let message = format!("{standing}. The next part failed: {}. {rest}", failure.message.trim_end_matches('.'));
        CommandFailure { code: CommandFailure::incomplete("").code, message, ..failure }
    }

    /// Adds a sentence; those that differ only in the number that they begin with become one.
    pub fn disclose(&mut self, sentence: &str) {
        // The number as printed by `agreeing`, with thousands separators.
        let digits = sentence.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(sentence.len());
        match sentence[..digits].replace(',', "").parse::<u64>() {
            Ok(number) => {
                let sum = self.disclosures.entry(sentence[digits..].to_owned()).or_default();
                *sum = Some(sum.unwrap_or_default() + number);
            }
            Err(_) => _ = self.disclosures.insert(sentence.to_owned(), None),
        }
    }

    pub fn disclosures(&self) -> Vec<String> {
        let sentence = |(rest, sum): (&String, &Option<u64>)| match sum {
            Some(sum) => format!("{}{rest}", thousands(*sum)),
            None => rest.clone(),
        };
        self.disclosures.iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_count_the_same_are_summed_up() {
        let mut totals = PartTotals::default();
        for sentence in ["12 x the text hides", "a warning", "1,030 x the text hides", "a warning"] {
            totals.disclose(sentence);
        }
        assert_eq!(totals.disclosures(), ["1,042 x the text hides", "a warning"]);
    }
}
