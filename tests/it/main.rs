//! End-to-end and case tests.
#![allow(clippy::unwrap_used)]

mod cards;
