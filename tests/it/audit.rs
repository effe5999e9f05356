//! `portcullis audit`: an auditor's questions to a journal in files.

mod asked;
mod bundled;
mod hidden;
mod made;
mod pruned;
mod verified;
