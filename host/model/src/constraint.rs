//! What a job demands of the features of its nodes beyond features that all of them have: `a|b`, `[a|b]`, `[a*2&b]`.

use crate::limits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A condition on the features of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Features {
    /// It has this one.
    Has(String),
    /// It satisfies all of these; at least two.
    All(Vec<Features>),
    /// It satisfies one of these; at least two.
    Any(Vec<Features>),
}

impl Features {
    /// Whether a node with these features, sorted, satisfies it.
    pub fn hold(&self, features: &[String]) -> bool {
        match self {
            Self::Has(name) => features.binary_search(name).is_ok(),
            Self::All(parts) => parts.iter().all(|part| part.hold(features)),
            Self::Any(parts) => parts.iter().any(|part| part.hold(features)),
        }
    }

    fn names(&self) -> usize {
        match self {
            Self::Has(_) => 1,
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::names).sum(),
        }
    }
}

/// What is demanded of the nodes of a job together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Constraint {
    /// Each of them satisfies this.
    Each(Features),
    /// All of them satisfy the same one of these; the first with which the job can be placed counts.
    Same(Vec<Features>),
    /// So many of them satisfy each of these, a node counting for one of them only. The others may be any.
    Counts(Vec<(Features, u32)>),
}

impl Constraint {
    /// Reads a constraint in Slurm's words: features that each node must have, and what is demanded beyond.
    ///
    /// # Errors
    /// Every other text, with what would work.
    pub fn parse(text: &str) -> Result<(Vec<String>, Option<Self>), String> {
        let mut parser = Parser { text, rest: text, depth: 0 };
        let (mut features, mut each, mut counts, mut same) = (Vec::new(), Vec::new(), Vec::new(), None);
        loop {
            match parser.term(true)? {
                Term::Features(Features::Has(name)) => features.push(name),
                Term::Features(other) => each.push(other),
                Term::Counts(more) => counts.extend(more),
                Term::Same(others) if same.is_none() => same = Some(others),
                Term::Same(_) => return Err(parser.wrong("has more than one [...]")),
            }
            parser.blanks();
            match parser.take() {
                None => break,
                Some('&') => {}
                // At the top without brackets: all that was read and what follows are alternatives.
                Some('|') => {
                    let alone = features.len() + each.len() == 1 && counts.is_empty() && same.is_none();
                    if !alone {
                        return Err(parser.mixed());
                    }
                    let first = each.pop().unwrap_or_else(|| Features::Has(features.pop().unwrap_or_default()));
                    let mut any = vec![first];
                    loop {
                        match parser.term(false)? {
                            Term::Features(more) => any.push(more),
                            _ => return Err(parser.wrong("counts nodes beside |")),
                        }
                        parser.blanks();
                        match parser.take() {
                            None => break,
                            Some('|') => {}
                            Some('&') => return Err(parser.mixed()),
                            Some(other) => return Err(parser.unexpected(other)),
                        }
                    }
                    each.push(Features::Any(any));
                    break;
                }
                Some(other) => return Err(parser.unexpected(other)),
            }
        }
        features.sort();
        features.dedup();
        let each = match each.len() {
            0 | 1 => each.pop(),
            _ => Some(Features::All(each)),
        };
        let kinds = usize::from(each.is_some()) + usize::from(!counts.is_empty()) + usize::from(same.is_some());
        if kinds > 1 {
            return Err(parser.wrong(
                "puts | or counts beside [...] or each other; beside them only features that all \
                                     nodes have work",
            ));
        }
        let constraint = match (each, same) {
            (Some(each), _) => Some(Self::Each(each)),
            (None, Some(same)) => Some(Self::Same(same)),
            (None, None) => (!counts.is_empty()).then_some(Self::Counts(counts)),
        };
        let names = features.len() + constraint.as_ref().map_or(0, Self::names);
        if names > limits::FEATURES {
            return Err(parser.wrong(&format!("names {names} features; at most {} are taken", limits::FEATURES)));
        }
        Ok((features, constraint))
    }

    fn names(&self) -> usize {
        match self {
            Self::Each(features) => features.names(),
            Self::Same(all) => all.iter().map(Features::names).sum(),
            Self::Counts(all) => all.iter().map(|(features, _)| features.names()).sum(),
        }
    }

    /// The conditions of which one node may satisfy several: alternatives, or what is counted.
    pub fn groups(&self) -> impl Iterator<Item = &Features> {
        let (same, counts): (&[Features], &[(Features, u32)]) = match self {
            Self::Each(_) => (&[], &[]),
            Self::Same(all) => (all, &[]),
            Self::Counts(all) => (&[], all),
        };
        same.iter().chain(counts.iter().map(|(features, _)| features))
    }

    /// How many nodes it names in all.
    pub fn counted(&self) -> u32 {
        match self {
            Self::Counts(all) => all.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n)),
            Self::Each(_) | Self::Same(_) => 0,
        }
    }

    /// Whether a node with these features, sorted, can be among `nodes` nodes.
    pub fn admits(&self, features: &[String], nodes: u32) -> bool {
        match self {
            Self::Each(each) => each.hold(features),
            Self::Counts(_) if self.counted() < nodes => true,
            Self::Same(_) | Self::Counts(_) => self.groups().any(|group| group.hold(features)),
        }
    }
}

enum Term {
    Features(Features),
    Counts(Vec<(Features, u32)>),
    Same(Vec<Features>),
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    depth: u32,
}

impl Parser<'_> {
    fn wrong(&self, what: &str) -> String {
        format!(
            "'{}' {what}; write features with & between them, such as a100&nvlink, or a|b, [a|b], [a*2&b*1]",
            self.text
        )
    }

    fn mixed(&self) -> String {
        self.wrong("mixes & and |: put parentheses around what belongs together")
    }

    fn unexpected(&self, c: char) -> String {
        self.wrong(&format!("has '{c}' where it cannot stand"))
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// A feature or something in parentheses or brackets; `top`: counts and brackets may stand here.
    fn term(&mut self, top: bool) -> Result<Term, String> {
        self.blanks();
        if self.rest.starts_with('[') {
            if !top {
                return Err(self.wrong("has [...] where it cannot stand"));
            }
            self.take();
            return self.bracket();
        }
        let features = self.factor()?;
        self.blanks();
        if !top || !self.rest.starts_with('*') {
            return Ok(Term::Features(features));
        }
        self.take();
        self.count().map(|n| Term::Counts(vec![(features, n)]))
    }

    /// What stands between [ and ]: alternatives, or counts.
    fn bracket(&mut self) -> Result<Term, String> {
        let (mut parts, mut counts, mut between) = (Vec::new(), Vec::new(), None);
        loop {
            let features = self.factor()?;
            self.blanks();
            if self.rest.starts_with('*') {
                self.take();
                counts.push((features, self.count()?));
            } else {
                parts.push(features);
            }
            self.blanks();
            match self.take() {
                Some(']') => break,
                Some(c @ ('&' | '|')) if between.is_none_or(|before| before == c) => between = Some(c),
                Some('&' | '|') => return Err(self.mixed()),
                Some(other) => return Err(self.unexpected(other)),
                None => return Err(self.wrong("has no ] for its [")),
            }
        }
        match (parts.len(), counts.len(), between) {
            (_, 0, None | Some('|')) => Ok(Term::Same(parts)),
            (_, 0, _) => Ok(Term::Same(vec![Features::All(parts)])),
            (0, _, None | Some('&')) => Ok(Term::Counts(counts)),
            _ => Err(self.wrong("mixes counts with other things in [...]; give each a count, such as [a*2&b*1]")),
        }
    }

    fn count(&mut self) -> Result<u32, String> {
        self.blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        match digits.parse() {
            Ok(n) if (1..=limits::NODES).contains(&n) => Ok(n),
            _ => Err(self.wrong(&format!("has '{digits}' for a number of nodes"))),
        }
    }

    /// A feature, or an expression in parentheses.
    fn factor(&mut self) -> Result<Features, String> {
        self.blanks();
        if self.rest.starts_with('(') {
            self.take();
            self.depth += 1;
            if self.depth > limits::FEATURES_DEPTH {
                return Err(self.wrong("has too many parentheses in each other"));
            }
            let inner = self.expression()?;
            self.depth -= 1;
            return Ok(inner);
        }
        let end =
            self.rest.find(|c: char| "&|[]()*,!{}\"'".contains(c) || c.is_whitespace()).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(match rest.chars().next() {
                Some(c) => self.unexpected(c),
                None => self.wrong("is not a constraint: a feature is missing"),
            });
        }
        self.rest = rest;
        Ok(Features::Has(name.to_owned()))
    }

    /// What stands between ( and ).
    fn expression(&mut self) -> Result<Features, String> {
        let (mut parts, mut between) = (vec![self.factor()?], None);
        loop {
            self.blanks();
            match self.take() {
                Some(')') => break,
                Some(c @ ('&' | '|')) if between.is_none_or(|before| before == c) => {
                    between = Some(c);
                    parts.push(self.factor()?);
                }
                Some('&' | '|') => return Err(self.mixed()),
                Some(other) => return Err(self.unexpected(other)),
                None => return Err(self.wrong("has no ) for its (")),
            }
        }
        Ok(match (between, parts.len()) {
            (_, 1) => parts.remove(0),
            (Some('|'), _) => Features::Any(parts),
            _ => Features::All(parts),
        })
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Self], between| {
            f.write_str("(")?;
            for (i, part) in parts.iter().enumerate() {
                f.write_str(if i > 0 { between } else { "" })?;
                part.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Has(name) => f.write_str(name),
            Self::All(parts) => list(f, parts, "&"),
            Self::Any(parts) => list(f, parts, "|"),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(each) => each.fmt(f),
            Self::Same(all) => {
                f.write_str("[")?;
                for (i, part) in all.iter().enumerate() {
                    write!(f, "{}{part}", if i > 0 { "|" } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Counts(all) => {
                f.write_str("[")?;
                for (i, (part, n)) in all.iter().enumerate() {
                    write!(f, "{}{part}*{n}", if i > 0 { "&" } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> (String, String) {
        let (features, constraint) = Constraint::parse(text).unwrap();
        (features.join("&"), constraint.map(|c| c.to_string()).unwrap_or_default())
    }

    #[test]
    fn constraints_in_every_form() {
        for (text, features, constraint) in [
            ("a", "a", ""),
            ("b&a & b", "a&b", ""),
            ("a|b|c", "", "(a|b|c)"),
            ("a&(b|c)", "a", "(b|c)"),
            ("(a&b)|c", "", "((a&b)|c)"),
            ("(a|b)&(c|d)", "", "((a|b)&(c|d))"),
            ("[a|b]", "", "[a|b]"),
            ("x&[a|(b&c)]", "x", "[a|(b&c)]"),
            ("a*2", "", "[a*2]"),
            ("[a*2&b*1]", "", "[a*2&b*1]"),
            ("x&a*2&(b|c)*3", "x", "[a*2&(b|c)*3]"),
        ] {
            assert_eq!(read(text), (features.to_owned(), constraint.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_none_says_why() {
        for (text, part) in [
            ("", "feature is missing"),
            ("a&", "feature is missing"),
            ("a|b&c", "parentheses"),
            ("a&b|c", "parentheses"),
            ("[a|b&c]", "parentheses"),
            ("(a", "no ) for"),
            ("[a|b", "no ] for"),
            ("[a*2&b]", "give each a count"),
            ("a*0", "number of nodes"),
            ("[a|b]&[c|d]", "more than one"),
            ("[a|b]&(c|d)", "beside"),
            ("a,b", "','"),
            ("!a", "'!'"),
            ("((((((((((a))))))))))", "parentheses in each other"),
        ] {
            let error = Constraint::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(Constraint::parse(&vec!["a"; limits::FEATURES + 1].join("|")).unwrap_err().contains("at most"));
    }

    #[test]
    fn nodes_are_admitted_where_they_can_be_of_use() {
        let admits = |text: &str, features: &[&str], nodes| {
            let features: Vec<String> = features.iter().map(|f| (*f).to_owned()).collect();
            Constraint::parse(text).unwrap().1.unwrap().admits(&features, nodes)
        };
        assert!(admits("(a&b)|c", &["c"], 1) && !admits("(a&b)|c", &["a"], 1));
        assert!(admits("[a|b]", &["b"], 2) && !admits("[a|b]", &["c"], 2));
        assert!(admits("a*2", &["c"], 3) && !admits("a*2", &["c"], 2));
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_so_that_it_reads_again(text in "[ab&|()*2\\[\\]]{0,14}") {
            if let Ok((_, Some(constraint))) = Constraint::parse(&text) {
                prop_assert_eq!(Constraint::parse(&constraint.to_string()), Ok((Vec::new(), Some(constraint))));
            }
        }
    }
}
