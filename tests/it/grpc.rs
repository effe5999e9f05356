//! gRPC: field tables, framing, deadlines, answers, and what holds for any bytes.

mod answers;
mod frames;
mod health;
mod properties;
mod tables;
mod timeouts;
