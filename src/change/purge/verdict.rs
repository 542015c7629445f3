//! The status that an erasure ends with: it depends on what was left, or could not be checked, after the deletion, not
//! on what the plan expected.

use serde::{Deserialize, Serialize};

/// Kind of data that is left, or was not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemainKind {
    /// Rows that belong to the person.
    Rows,
    /// Values that name the person and were not left by choice.
    Mention,
    /// Values with texts of deleted rows, copied by a trigger or a rule of the database.
    Copied,
    /// Values that refer to deleted rows.
    Reference,
    /// Foreign keys that dangle and did not before.
    Dangling,
    /// Private values of the audit trail.
    Private,
    /// Search indexes that still return hits.
    Index,
    /// Search indexes that could not be queried.
    IndexUnread,
    /// Hits in the bytes of the files.
    Bytes,
    /// Files that were not searched.
    BytesUnread,
    /// Tables that could not be read, or whose rows may be hidden by policies.
    Unread,
    /// Steps of the physical pass that failed.
    Unclean,
    /// Values that name the person and were left by choice.
    Left,
    /// Values of tables outside the layout, which are left alone.
    Outside,
    /// References that the plan said would stay.
    LeftReference,
    /// The account with the application, kept by choice.
    Account,
    /// Our own records that the audit trail depends on.
    Trail,
    /// Texts of the database's structure.
    Structure,
    /// Rows that lead to the person, and in which other people have a share.
    Shared,
    /// Hashes of texts that have lost words since.
    OldHash,
    /// Vectors of texts that have lost words since.
    OldVector,
    /// Values that could not be read.
    Opaque,
    /// Bytes of a server's files, which cannot be searched.
    ServerBytes,
    /// Bytes that remaining rows also explain.
    Untold,
    /// Cleaning that our role may not do here.
    NotAllowed,
    /// Rows in another database or in someone else's session, or whose owner only another database knows.
    Elsewhere,
    /// Handles and ids that only deleted rows listed.
    Forgotten,
}

impl RemainKind {
    /// The best status that an erasure can end with if this is left.
    pub fn allows(self) -> PurgeStatus {
        match self {
            RemainKind::Rows
            | RemainKind::Mention
            | RemainKind::Copied
            | RemainKind::Reference
            | RemainKind::Dangling
            | RemainKind::Private
            | RemainKind::Index
            | RemainKind::IndexUnread
            | RemainKind::Bytes
            | RemainKind::BytesUnread
            | RemainKind::Unread
            | RemainKind::Unclean => PurgeStatus::Incomplete,
            RemainKind::Left
            | RemainKind::Outside
            | RemainKind::LeftReference
            | RemainKind::Account
            | RemainKind::Trail
            | RemainKind::Structure
            | RemainKind::Shared
            | RemainKind::OldHash
            | RemainKind::OldVector
            | RemainKind::Opaque
            | RemainKind::ServerBytes
            | RemainKind::Untold
            | RemainKind::NotAllowed
            | RemainKind::Elsewhere
            | RemainKind::Forgotten => PurgeStatus::Disclosed,
        }
    }

    /// Whether this can explain values that still name the person after a complete erasure.
    pub fn leaves_words(self) -> bool {
        matches!(
            self,
            RemainKind::Left
                | RemainKind::Outside
                | RemainKind::LeftReference
                | RemainKind::Account
                | RemainKind::Trail
                | RemainKind::Structure
                | RemainKind::Opaque
                | RemainKind::Forgotten
        )
    }
}

/// One thing that is left, or was not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remain {
    /// Kind of the finding.
    pub kind: RemainKind,
    /// Place and number, in words that name nobody.
    pub what: String,
}

impl Remain {
    /// A finding.
    pub fn new(kind: RemainKind, what: impl Into<String>) -> Self {
        Remain { kind, what: what.into() }
    }
}

/// Final status of an erasure, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(into = "&'static str", from = "String")]
pub enum PurgeStatus {
    /// Nothing is left and everything was checked.
    Verified,
    /// Only named data is left that was chosen, or that cannot be removed.
    Disclosed,
    /// Data is left or was not checked.
    #[default]
    Incomplete,
}

impl From<PurgeStatus> for &'static str {
    fn from(status: PurgeStatus) -> Self {
        status.word()
    }
}

impl From<String> for PurgeStatus {
    fn from(word: String) -> Self {
        PurgeStatus::of_word(&word)
    }
}

impl PurgeStatus {
    /// The status word on a receipt.
    pub fn word(self) -> &'static str {
        match self {
            PurgeStatus::Verified => "verified",
            PurgeStatus::Disclosed => "verified with disclosures",
            PurgeStatus::Incomplete => "incomplete",
        }
    }

    /// Parses a status word; anything unknown is incomplete.
    pub fn of_word(word: &str) -> Self {
        let all = [PurgeStatus::Verified, PurgeStatus::Disclosed];
        all.into_iter().find(|status| status.word() == word).unwrap_or(PurgeStatus::Incomplete)
    }
}

/// The status that some findings allow.
pub fn status(findings: &[Remain]) -> PurgeStatus {
    findings.iter().map(|finding| finding.kind.allows()).max().unwrap_or(PurgeStatus::Verified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_the_word() {
        for (kinds, word) in [
            (&[][..], "verified"),
            (&[RemainKind::Left], "verified with disclosures"),
            (&[RemainKind::Outside], "verified with disclosures"),
            (&[RemainKind::LeftReference], "verified with disclosures"),
            (&[RemainKind::Account], "verified with disclosures"),
            (&[RemainKind::Trail], "verified with disclosures"),
            (&[RemainKind::Structure], "verified with disclosures"),
            (&[RemainKind::Shared], "verified with disclosures"),
            (&[RemainKind::OldHash], "verified with disclosures"),
            (&[RemainKind::OldVector], "verified with disclosures"),
            (&[RemainKind::Opaque], "verified with disclosures"),
            (&[RemainKind::ServerBytes], "verified with disclosures"),
            (&[RemainKind::Untold], "verified with disclosures"),
            (&[RemainKind::NotAllowed], "verified with disclosures"),
            (&[RemainKind::Elsewhere], "verified with disclosures"),
            (&[RemainKind::Forgotten], "verified with disclosures"),
            (&[RemainKind::Rows], "incomplete"),
            (&[RemainKind::Mention], "incomplete"),
            (&[RemainKind::Copied], "incomplete"),
            (&[RemainKind::Reference], "incomplete"),
            (&[RemainKind::Dangling], "incomplete"),
            (&[RemainKind::Private], "incomplete"),
            (&[RemainKind::Index], "incomplete"),
            (&[RemainKind::IndexUnread], "incomplete"),
            (&[RemainKind::Bytes], "incomplete"),
            (&[RemainKind::BytesUnread], "incomplete"),
            (&[RemainKind::Unread], "incomplete"),
            (&[RemainKind::Unclean], "incomplete"),
            (&[RemainKind::Account, RemainKind::Left, RemainKind::ServerBytes], "verified with disclosures"),
            (&[RemainKind::Account, RemainKind::Unread, RemainKind::Left], "incomplete"),
        ] {
            let findings: Vec<Remain> = kinds.iter().map(|kind| Remain::new(*kind, "")).collect();
            assert_eq!(status(&findings).word(), word, "{kinds:?}");
        }
    }

    #[test]
    fn a_word_that_is_not_known_is_no_good_one() {
        for status in [PurgeStatus::Verified, PurgeStatus::Disclosed, PurgeStatus::Incomplete] {
            assert_eq!(PurgeStatus::of_word(status.word()), status);
        }
        assert_eq!(PurgeStatus::of_word("done"), PurgeStatus::Incomplete);
    }
}
