//! A [`Problem`] found in a file an operator wrote, and how it is shown.

use std::fmt;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document is not used.
    Error,
    /// The document is used; the operator should look.
    Warning,
}

/// One thing wrong with a configuration or policy file.
///
/// Rendered as
///
/// ```text
/// error[PC012]: unknown field `routee`
///   --> config/gateway.yaml:14:5
///    |
/// 14 |     routee: {path: /agents/x}
///    |     ^
///    = at agents[0]
///    = help: did you mean `route`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// Stable code, `PC` and three digits.
    pub code: &'static str,
    /// What is wrong: lower case, no final period, the operator's own text in backticks.
    pub message: String,
    /// The file as it was named to us.
    pub file: String,
    /// 1-based line; 0 when the problem is about the whole file.
    pub line: usize,
    /// 1-based column in characters.
    pub column: usize,
    /// The text of that line, cut at 160 characters.
    pub source_line: String,
    /// YAML path such as `agents[0].route.path`; empty at the top.
    pub path: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the YAML path of the value.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Problem {
        self.path = path.into();
        self
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(mut self) -> Problem {
        self.severity = Severity::Warning;
        self
    }

    /// An error about a whole file.
    pub fn of_file(
        file: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Problem {
        Problem {
            severity: Severity::Error,
            code,
            message: message.into(),
            file: file.into(),
            line: 0,
            column: 0,
            source_line: String::new(),
            path: String::new(),
            hint: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{word}[{}]: {}", self.code, self.message)?;
        if self.line == 0 {
            writeln!(f, "  --> {}", self.file)?;
        } else {
            let gutter = self.line.to_string().len();
            writeln!(
                f,
                "{:gutter$}--> {}:{}:{}",
                "", self.file, self.line, self.column
            )?;
            writeln!(f, "{:gutter$} |", "")?;
            writeln!(f, "{} | {}", self.line, self.source_line)?;
            // A caret past the end of a line that was cut would point at nothing.
            if self.column <= self.source_line.chars().count() + 1 {
                writeln!(
                    f,
                    "{:gutter$} | {:>width$}",
                    "",
                    "^",
                    width = self.column.max(1)
                )?;
            }
        }
        if !self.path.is_empty() {
            writeln!(f, "   = at {}", self.path)?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "   = help: {hint}")?;
        }
        Ok(())
    }
}

/// All problems of one load, in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|p| p.severity == Severity::Error)
    }

    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Adds all of another load.
    pub fn extend(&mut self, other: Problems) {
        self.0.extend(other.0);
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
