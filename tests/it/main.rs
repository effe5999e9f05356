//! End-to-end and case tests.

mod config;
