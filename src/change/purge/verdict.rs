//! The word that an erasure ends on: decided by what was found left, or could not be looked at, after deleting. What a
//! plan expected before plays no part in it.

use serde::Serialize;

/// What is left, or was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Rows that belong to the person.
    Rows,
    /// Values that name the person and that nobody chose to leave.
    Mention,
    /// Values that refer to rows that are gone.
    Reference,
    /// Foreign keys that lead nowhere and did not before.
    Dangling,
    /// Private values of the audit trail.
    Private,
    /// Search indexes that still answer.
    Index,
    /// Search indexes that could not be asked.
    IndexUnread,
    /// Bytes of the files.
    Bytes,
    /// Files that were not looked through.
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
    /// Records of our own that the audit trail rests on.
    Trail,
    /// Texts of the database's structure.
    Structure,
    /// Values that nobody could look into.
    Opaque,
    /// Bytes that a server does not show.
    ServerBytes,
    /// Bytes that rows which stay account for as well.
    Untold,
    /// Cleaning that is not ours to do here.
    NotAllowed,
    /// Rows in another database, or in a session of somebody else.
    Elsewhere,
}

impl Kind {
    /// The best word that an erasure can end on with this.
    #[must_use]
    pub fn allows(self) -> Status {
        match self {
            Kind::Rows
            | Kind::Mention
            | Kind::Reference
            | Kind::Dangling
            | Kind::Private
            | Kind::Index
            | Kind::IndexUnread
            | Kind::Bytes
            | Kind::BytesUnread
            | Kind::Unread
            | Kind::Unclean => Status::Incomplete,
            Kind::Left
            | Kind::Outside
            | Kind::LeftReference
            | Kind::Account
            | Kind::Trail
            | Kind::Structure
            | Kind::Opaque
            | Kind::ServerBytes
            | Kind::Untold
            | Kind::NotAllowed
            | Kind::Elsewhere => Status::Disclosed,
        }
    }
}

/// One thing that is left, or was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// Where and how many, in words that name nobody.
    pub what: String,
}

impl Finding {
    /// A finding.
    #[must_use]
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Finding { kind, what: what.into() }
    }
}

/// How an erasure ended, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing is left and everything was looked at.
    Verified,
    /// The same, but for what is named and was chosen or cannot be otherwise.
    Disclosed,
    /// Something is left or was not looked at.
    Incomplete,
}

impl Status {
    /// The word on a receipt.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Verified => "verified",
            Status::Disclosed => "verified with disclosures",
            Status::Incomplete => "incomplete",
        }
    }

    /// The status behind a word; anything unknown is incomplete.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        let all = [Status::Verified, Status::Disclosed];
        all.into_iter().find(|status| status.word() == word).unwrap_or(Status::Incomplete)
    }
}

/// The word that some findings allow.
#[must_use]
pub fn status(findings: &[Finding]) -> Status {
    findings.iter().map(|finding| finding.kind.allows()).max().unwrap_or(Status::Verified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_the_word() {
        for (kinds, word) in [
            (&[][..], "verified"),
            (&[Kind::Left], "verified with disclosures"),
            (&[Kind::Outside], "verified with disclosures"),
            (&[Kind::LeftReference], "verified with disclosures"),
            (&[Kind::Account], "verified with disclosures"),
            (&[Kind::Trail], "verified with disclosures"),
            (&[Kind::Structure], "verified with disclosures"),
            (&[Kind::Opaque], "verified with disclosures"),
            (&[Kind::ServerBytes], "verified with disclosures"),
            (&[Kind::Untold], "verified with disclosures"),
            (&[Kind::NotAllowed], "verified with disclosures"),
            (&[Kind::Elsewhere], "verified with disclosures"),
            (&[Kind::Rows], "incomplete"),
            (&[Kind::Mention], "incomplete"),
            (&[Kind::Reference], "incomplete"),
            (&[Kind::Dangling], "incomplete"),
            (&[Kind::Private], "incomplete"),
            (&[Kind::Index], "incomplete"),
            (&[Kind::IndexUnread], "incomplete"),
            (&[Kind::Bytes], "incomplete"),
            (&[Kind::BytesUnread], "incomplete"),
            (&[Kind::Unread], "incomplete"),
            (&[Kind::Unclean], "incomplete"),
            (&[Kind::Account, Kind::Left, Kind::ServerBytes], "verified with disclosures"),
            (&[Kind::Account, Kind::Unread, Kind::Left], "incomplete"),
        ] {
            let findings: Vec<Finding> = kinds.iter().map(|kind| Finding::new(*kind, "")).collect();
            assert_eq!(status(&findings).word(), word, "{kinds:?}");
        }
    }

    #[test]
    fn a_word_that_is_not_known_is_no_good_one() {
        for status in [Status::Verified, Status::Disclosed, Status::Incomplete] {
            assert_eq!(Status::of_word(status.word()), status);
        }
        assert_eq!(Status::of_word("done"), Status::Incomplete);
    }
}
