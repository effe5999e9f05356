//! How far a run of uninteresting bytes goes.

/// Bytes looked at together: without an exit in between the compiler makes one vector step of it.
const BLOCK: usize = 16;

/// The number of leading bytes for which `stops` is false.
pub(super) fn run_length(bytes: &[u8], stops: impl Fn(u8) -> bool) -> usize {
    let mut length = 0;
    for block in bytes.chunks_exact(BLOCK) {
        if block.iter().fold(false, |found, &byte| found | stops(byte)) {
            break;
        }
        length += BLOCK;
    }
    bytes[length..]
        .iter()
        .position(|&byte| stops(byte))
        .map_or(bytes.len(), |more| length + more)
}
