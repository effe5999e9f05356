//! End-to-end and case tests.
