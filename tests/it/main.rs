//! End-to-end and case tests.

mod wire;
