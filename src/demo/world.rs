//! Inhabitants of the demo: agents, organisations and people, all invented.

use super::chance::Chance;

#[derive(Debug)]
pub struct DemoAgent {
    /// Id, as in `agent_id`.
    pub id: &'static str,
    pub name: &'static str,
    /// Field that the agent works in; the domain of its episodes.
    pub domain: &'static str,
    pub status: &'static str,
    /// Relative share of all episodes.
    pub weight: f64,
    /// Maturity in the first, second, third and last quarter of the story.
    pub maturity: [&'static str; 4],
}

/// The agents, in the order used by topics.
pub const AGENTS: &[DemoAgent] = &[
    DemoAgent {
        id: "agent_support",
        name: "Support desk",
        domain: "support",
        status: "active",
        weight: 0.27,
        maturity: ["supervised", "supervised", "autonomous", "autonomous"],
    },
    DemoAgent {
        id: "agent_data_steward",
        name: "Data steward",
        domain: "data",
        status: "active",
        weight: 0.19,
        maturity: ["intern", "supervised", "supervised", "supervised"],
    },
    DemoAgent {
        id: "agent_release",
        name: "Release engineer",
        domain: "engineering",
        status: "active",
        weight: 0.18,
        maturity: ["supervised", "supervised", "supervised", "autonomous"],
    },
    DemoAgent {
        id: "agent_travel",
        name: "Travel desk",
        domain: "travel",
        status: "active",
        weight: 0.14,
        maturity: ["student", "intern", "intern", "supervised"],
    },
    DemoAgent {
        id: "agent_research",
        name: "Research scout",
        domain: "research",
        status: "paused",
        weight: 0.09,
        maturity: ["student", "student", "intern", "intern"],
    },
    DemoAgent {
        id: "agent_finance",
        name: "Finance clerk",
        domain: "finance",
        status: "active",
        weight: 0.13,
        maturity: ["intern", "intern", "supervised", "supervised"],
    },
];

#[derive(Debug)]
pub struct Organisation {
    pub name: &'static str,
    /// Domain of its mail addresses, under a reserved top-level domain.
    pub mail: &'static str,
}

pub const ORGANISATIONS: &[Organisation] = &[
    Organisation { name: "Northwind Instruments", mail: "northwind-instruments.example" },
    Organisation { name: "Harbor & Pine", mail: "harborpine.example" },
    Organisation { name: "Kestrel Labs", mail: "kestrel-labs.example" },
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoPerson {
    /// Id, as in `user_id`.
    pub id: String,
    pub first: &'static str,
    pub name: String,
    /// Position in [`ORGANISATIONS`].
    pub organisation: usize,
    pub mail: String,
    /// Telephone number from a range reserved for fiction.
    pub phone: String,
    pub preferences: Vec<&'static str>,
    /// Habits of the person.
    pub patterns: Vec<&'static str>,
}

macro_rules! names {
    ($($name:literal $id:literal,)*) => {
        &[$(($name, $id)),*]
    };
}

/// First names, with their spelling in ids.
const FIRST: &[(&str, &str)] = names![
    "Dana" "dana", "Tomás" "tomas", "Aiko" "aiko", "Marta" "marta", "Jonas" "jonas", "Priya" "priya", "Zoë" "zoe",
    "Emeka" "emeka", "Lucía" "lucia", "Henrik" "henrik", "Nadia" "nadia", "Oskar" "oskar", "Wei" "wei", "Ruth" "ruth",
    "Samir" "samir", "Ingrid" "ingrid", "Callum" "callum", "Yara" "yara", "Felix" "felix", "Hana" "hana",
    "Dmitri" "dmitri", "Amara" "amara", "Leon" "leon", "Siobhán" "siobhan", "Kofi" "kofi", "Elif" "elif",
    "Bruno" "bruno", "Maja" "maja", "Arjun" "arjun", "Clara" "clara", "Teo" "teo", "Noor" "noor", "Viktor" "viktor",
    "Grace" "grace", "Mateus" "mateus", "Anouk" "anouk", "Ravi" "ravi", "Liv" "liv", "Pavel" "pavel", "Imani" "imani",
];

/// Family names, with their spelling in ids.
const LAST: &[(&str, &str)] = names![
    "Whitfield" "whitfield", "Okafor" "okafor", "Lindqvist" "lindqvist", "Tanaka" "tanaka", "Moreau" "moreau",
    "Castillo" "castillo", "Hartmann" "hartmann", "Novák" "novak", "Iyer" "iyer", "Brandt" "brandt",
    "O'Malley" "omalley", "Rossi" "rossi", "Haddad" "haddad", "Virtanen" "virtanen", "Chen" "chen",
    "Müller" "mueller", "Adeyemi" "adeyemi", "Kowalska" "kowalska", "Sørensen" "sorensen", "Delgado" "delgado",
    "Fraser" "fraser", "Yilmaz" "yilmaz", "Petrov" "petrov", "Nakamura" "nakamura", "Almeida" "almeida",
    "Bergström" "bergstrom", "Mensah" "mensah", "Dubois" "dubois", "Kaur" "kaur", "Vance" "vance", "Rahimi" "rahimi",
    "Schuster" "schuster", "Pereira" "pereira", "Lange" "lange", "Abbott" "abbott", "Zhang" "zhang",
    "Farkas" "farkas", "Nyström" "nystrom", "Ibrahim" "ibrahim", "Keller" "keller", "Marchetti" "marchetti",
    "Desai" "desai", "Thorne" "thorne", "Jansen" "jansen", "Bello" "bello", "Silva" "silva", "Quinn" "quinn",
    "Holt" "holt", "Eriksen" "eriksen", "Varga" "varga",
];

const PREFERENCES: &[&str] = &[
    "short answers", "charts before tables", "metric units", "no calls before ten", "drafts before sending",
    "totals in euro", "sources with links", "one change at a time", "window seat", "plain text mails",
];

const PATTERNS: &[&str] = &[
    "asks for totals first", "reviews on Friday afternoon", "closes spreadsheets at once", "approves from the phone",
    "wants a second opinion", "follows up next morning", "forwards to the team", "corrects names and spellings",
];

/// Largest number of different people.
pub const MOST_PEOPLE: u64 = (FIRST.len() * LAST.len()) as u64;

/// The person with this number (below [`MOST_PEOPLE`]).
pub fn person(number: u64, seed: u64) -> DemoPerson {
    let (first, last) = (FIRST.len() as u64, LAST.len() as u64);
    let (given, given_id) = FIRST[(number % first) as usize];
    // Every round over the first names shifts the family names by one, so that no two people share both.
    let (family, family_id) = LAST[((number / first + (number % first) * 13) % last) as usize];
    let mut chance = Chance::new(seed, "person", number);
    let organisation = chance.weighted(&[0.45, 0.3, 0.25]);
    let phone = match (organisation, number % 1000) {
        (0, serial) => format!("+1-{}-555-01{:02}", 202 + number / 100, serial % 100),
        (1, serial) => format!("+44 {} 0{serial:03}", if number < 1000 { "20 7946" } else { "161 496" }),
        (_, serial) => format!("+49 {} {serial:03}", if number < 1000 { "30 23125" } else { "40 66969" }),
    };
    let liked = 1 + chance.below(3) as usize;
    DemoPerson {
        id: format!("{given_id}.{family_id}"),
        first: given,
        name: format!("{given} {family}"),
        organisation,
        mail: format!("{given_id}.{family_id}@{}", ORGANISATIONS[organisation].mail),
        phone,
        preferences: chance.some(PREFERENCES, liked).into_iter().copied().collect(),
        patterns: chance.some(PATTERNS, 1 + liked / 2).into_iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_people_share_an_id() {
        let ids: HashSet<String> = (0..MOST_PEOPLE).map(|n| person(n, 1).id).collect();
        assert_eq!(ids.len() as u64, MOST_PEOPLE);
    }
}
