//! gRPC: field tables, framing.

mod frames;
mod tables;
