//! [`PolicySet`]: the compiled rules of every policy file.

/// The compiled rules of every policy file. The default has no rule: it denies everything.
#[derive(Debug, Default)]
pub struct PolicySet {}
