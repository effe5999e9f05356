//! `portcullis audit`: an auditor's questions to a journal in files.

mod asked;
mod made;
mod verified;
