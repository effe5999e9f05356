//! The fields of an AgentCard.

pub mod v0_3;
pub mod v1_0;

use super::STRUCT;
