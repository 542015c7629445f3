//! Reads Rust source far enough to tell code, comments and text apart, and lists the paths that the code names.

/// A piece of source that is no comment and no white space.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// An identifier, a keyword or a number.
    Word(String),
    /// The text between quotes, escapes as written.
    Text(String),
    /// Any other character.
    Mark(char),
}

/// A piece of source with the place where it stands.
#[derive(Debug, Clone)]
pub struct Token {
    pub line: usize,
    pub kind: Kind,
    /// The inline modules around it, outermost first.
    pub inside: Vec<String>,
}

impl Token {
    /// Whether it is in an inline `mod tests`.
    pub fn in_tests(&self) -> bool {
        self.inside.iter().any(|module| module == "tests")
    }
}

/// A path that the code names, such as `crate::memory::Row`: each branch of a `use` tree is a path of its own.
#[derive(Debug)]
pub struct Path {
    pub line: usize,
    pub segments: Vec<String>,
    /// The inline modules around it, outermost first.
    pub inside: Vec<String>,
}

/// The tokens of a source file.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader { rest: source, line: 1, tokens: Vec::new() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    place_in_modules(&mut reader.tokens);
    reader.tokens
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl Reader<'_> {
    fn step(&mut self) {
        let first = self.rest.chars().next().expect("some source is left");
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.take(block_comment(self.rest));
        } else if let Some(opening) = raw_text(self.rest) {
            let closing = format!("\"{}", "#".repeat(opening.matches('#').count()));
            self.text(opening.len(), &closing, false);
        } else if first == '"' {
            self.text(1, "\"", true);
        } else if first == '\'' {
            self.take(quote(self.rest));
        } else if first.is_alphanumeric() || first == '_' {
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            self.push(Kind::Word(self.rest[..end].to_owned()));
            self.take(end);
        } else {
            if !first.is_whitespace() {
                self.push(Kind::Mark(first));
            }
            self.take(first.len_utf8());
        }
    }

    fn text(&mut self, opening: usize, closing: &str, escapes: bool) {
        let body = &self.rest[opening..];
        let mut end = 0;
        while !body[end..].starts_with(closing) && end < body.len() {
            let skipped = if escapes && body[end..].starts_with('\\') { 2 } else { 1 };
            end += body[end..].chars().take(skipped).map(char::len_utf8).sum::<usize>();
        }
        self.push(Kind::Text(body[..end].to_owned()));
        self.take((opening + end + closing.len()).min(self.rest.len()));
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { line: self.line, kind, inside: Vec::new() });
    }

    fn take(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }
}

/// Length of the block comment that `rest` begins with; such comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match rest.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") if depth == 1 => return at + 2,
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ if at >= rest.len() => return rest.len(),
            _ => at += rest[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
}

/// The opening of a raw text (`r"`, `br##"`) when `rest` begins with one.
fn raw_text(rest: &str) -> Option<&str> {
    let hashes = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let after = hashes.trim_start_matches('#');
    after.starts_with('"').then(|| &rest[..=rest.len() - after.len()])
}

/// Length of the character literal that `rest` begins with, or of the quote alone where it opens a lifetime.
fn quote(rest: &str) -> usize {
    let mut inner = rest[1..].chars();
    let literal = match (inner.next(), inner.next()) {
        (Some('\\'), Some(escaped)) => {
            let after = 2 + escaped.len_utf8();
            rest[after..].find('\'').map(|end| after + end + 1)
        }
        (Some(only), Some('\'')) => Some(only.len_utf8() + 2),
        _ => None,
    };
    literal.unwrap_or(1)
}

fn place_in_modules(tokens: &mut [Token]) {
    let mut open: Vec<Option<String>> = Vec::new();
    for at in 0..tokens.len() {
        let named = at.checked_sub(2).and_then(|before| match (&tokens[before].kind, &tokens[before + 1].kind) {
            (Kind::Word(keyword), Kind::Word(name)) if keyword == "mod" => Some(name.clone()),
            _ => None,
        });
        match tokens[at].kind {
            Kind::Mark('{') => open.push(named),
            Kind::Mark('}') => drop(open.pop()),
            _ => {}
        }
        tokens[at].inside = open.iter().flatten().cloned().collect();
    }
}

/// Every path that the tokens name. Names that stand alone are paths of one segment.
pub fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts = matches!(tokens[at].kind, Kind::Word(_));
        at = if starts { tree(tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads the path that begins at `at`, behind `prefix`, with all its branches; gives where it ends.
fn tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let start = &tokens[at.min(tokens.len() - 1)];
    let mut segments = prefix.to_vec();
    loop {
        match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Word(name)) => segments.push(name.clone()),
            Some(Kind::Mark('*')) => segments.push("*".to_owned()),
            Some(Kind::Mark('{')) => return branches(tokens, at + 1, &segments, found),
            _ => break,
        }
        at += 1;
        if !separator(tokens, at) {
            break;
        }
        at += 2;
    }
    found.push(Path { line: start.line, segments, inside: start.inside.clone() });
    at
}

fn branches(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    while let Some(token) = tokens.get(at) {
        at = match token.kind {
            Kind::Mark('}') => return at + 1,
            Kind::Mark(mark) if mark != '{' && mark != '*' => at + 1,
            Kind::Word(ref keyword) if keyword == "as" => at + 2,
            _ => tree(tokens, at, prefix, found),
        };
    }
    at
}

fn separator(tokens: &[Token], at: usize) -> bool {
    matches!(tokens.get(at..at + 2), Some([a, b]) if a.kind == Kind::Mark(':') && b.kind == Kind::Mark(':'))
}
