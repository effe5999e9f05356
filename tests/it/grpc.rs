//! gRPC: field tables, framing, deadlines, answers, and what holds for any bytes.

mod answers;
mod frames;
mod properties;
mod tables;
mod timeouts;
