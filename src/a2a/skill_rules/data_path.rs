//! [`DataPath`]: a JSONPath that leads to one value at most.

use std::fmt;

/// Longest path, in bytes.
const MAX_LENGTH: usize = 256;
/// Most steps of a path.
const MAX_STEPS: usize = 16;

/// A singular query of RFC 9535 (section 2.3.5.1), without negative indexes: what it finds cannot
/// be several values, so there is nothing to choose among.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPath {
    text: Box<str>,
    steps: Vec<Step>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into the member of an object.
    Name(Box<str>),
    /// Into the item of an array.
    Index(usize),
}

impl DataPath {
    /// Reads `$.a.b`, `$['a b'][0]` and the like.
    ///
    /// # Errors
    /// What is wrong, for the operator.
    pub fn parse(text: &str) -> Result<DataPath, &'static str> {
        if text.len() > MAX_LENGTH {
            return Err("it is longer than 256 bytes");
        }
        let mut rest = text.strip_prefix('$').ok_or("it does not start with `$`")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err("it has more than 16 steps");
            }
            let (step, after) = match (rest.strip_prefix('.'), rest.strip_prefix('[')) {
                (Some(name), _) => shorthand(name)?,
                (None, Some(inner)) => bracketed(inner)?,
                (None, None) => return Err("a step begins with `.` or `[`"),
            };
            steps.push(step);
            rest = after;
        }
        Ok(DataPath {
            text: text.into(),
            steps,
        })
    }

    /// Its steps, from the outside in.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl fmt::Display for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const SEVERAL: &str = "it could match several values";

fn shorthand(text: &str) -> Result<(Step, &str), &'static str> {
    if text.starts_with(['.', '*']) {
        return Err(SEVERAL);
    }
    let of_name = |c: char| c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii();
    let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name.chars().next() {
        None => Err("a name is missing after `.`"),
        Some(first) if first.is_ascii_digit() => {
            Err("a name after `.` does not begin with a digit; write `['…']`")
        }
        Some(_) => Ok((Step::Name(name.into()), rest)),
    }
}

fn bracketed(text: &str) -> Result<(Step, &str), &'static str> {
    let quote = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => quote,
        Some('*' | '?' | ':') => return Err(SEVERAL),
        Some('-') => return Err("an index counts from 0"),
        Some(_) | None => {
            let end = text.find(']').ok_or("a `]` is missing")?;
            let (digits, rest) = text.split_at(end);
            if digits.contains([',', ':']) {
                return Err(SEVERAL);
            }
            let canonical = digits == "0" || !digits.starts_with('0');
            let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let index = digits
                .parse::<u32>()
                .ok()
                .filter(|_| all_digits && canonical);
            let index = index.ok_or("between `[` and `]` stands a quoted name or an index")?;
            return Ok((
                Step::Index(index as usize),
                rest.get(1..).unwrap_or_default(),
            ));
        }
    };
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, escaped @ ('\'' | '"' | '\\' | '/'))) => name.push(escaped),
                Some(_) | None => return Err("only quotes and backslashes are escaped"),
            },
            c if c == quote => {
                let rest = text.get(at + 1..).unwrap_or_default();
                return match rest.strip_prefix(']') {
                    Some(rest) => Ok((Step::Name(name.into()), rest)),
                    None if rest.trim_start().starts_with(',') => Err(SEVERAL),
                    None => Err("a `]` is missing"),
                };
            }
            c if c.is_control() => return Err("it has a control character"),
            c => name.push(c),
        }
    }
    Err("a quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<String> {
        let path = DataPath::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(path.to_string(), text);
        let show = |step: &Step| match step {
            Step::Name(name) => name.to_string(),
            Step::Index(index) => format!("#{index}"),
        };
        path.steps().iter().map(show).collect()
    }

    #[test]
    fn singular_queries_are_read() {
        assert_eq!(steps("$.skill"), ["skill"]);
        assert_eq!(steps("$.a_1.b"), ["a_1", "b"]);
        assert_eq!(steps("$['a.b'][\"c'd\"]"), ["a.b", "c'd"]);
        assert_eq!(steps("$['it\\'s']"), ["it's"]);
        assert_eq!(steps("$[0].a[12]"), ["#0", "a", "#12"]);
        assert_eq!(steps("$.größe"), ["größe"]);
        assert_eq!(steps("$"), Vec::<String>::new());
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, why) in [
            ("skill", "does not start"),
            ("$skill", "a step begins"),
            ("$.", "missing after"),
            ("$..skill", "several"),
            ("$.*", "several"),
            ("$[*]", "several"),
            ("$['a','b']", "several"),
            ("$[0,1]", "several"),
            ("$[0:2]", "several"),
            ("$[:2]", "several"),
            ("$[?@.a]", "several"),
            ("$[-1]", "counts from 0"),
            ("$[01]", "quoted name or an index"),
            ("$[]", "quoted name or an index"),
            ("$[99999999999]", "quoted name or an index"),
            ("$.1a", "begin with a digit"),
            ("$.a b", "a step begins"),
            ("$['a]", "not closed"),
            ("$['a'", "is missing"),
            ("$['a\\n']", "only quotes"),
            ("$['a\u{1}']", "control"),
        ] {
            let refused = DataPath::parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert!(DataPath::parse(&format!("${}", ".a".repeat(17))).is_err());
        assert!(DataPath::parse(&format!("$.{}", "a".repeat(300))).is_err());
    }
}
