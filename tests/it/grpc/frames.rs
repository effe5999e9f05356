//! Framing: one frame of a request, and the frames of a reply in any chunks.

use crate::support::proto::framed;
use bytes::Bytes;
use portcullis::a2a::grpc::frame::{FrameFault, FrameReader, Framed, single};
use proptest::prelude::*;

#[test]
fn a_request_is_one_whole_uncompressed_frame() {
    assert_eq!(single(b"\0\0\0\0\0"), Ok(&b""[..]));
    assert_eq!(single(b"\0\0\0\0\x02ab"), Ok(&b"ab"[..]));
    for (body, fault) in [
        (&b""[..], FrameFault::Length),
        (b"\0\0\0\0", FrameFault::Length),
        (b"\0\0\0\0\x02a", FrameFault::Length),
        (b"\0\0\0\0\x01ab", FrameFault::Length),
        (b"\0\0\0\0\x01a\0\0\0\0\0", FrameFault::Length),
        (b"\0\xff\xff\xff\xffa", FrameFault::Length),
        (b"\x01\0\0\0\x01a", FrameFault::Compressed),
        (b"\x02\0\0\0\x01a", FrameFault::Flag),
        (b"\x80\0\0\0\x01a", FrameFault::Flag),
    ] {
        assert_eq!(single(body), Err(fault), "{body:x?}");
    }
}

/// Everything that comes out, and how it ended.
fn read(max: usize, chunks: &[Bytes]) -> (Vec<Framed>, Result<(), FrameFault>) {
    let mut reader = FrameReader::new(max);
    let mut out = Vec::new();
    for chunk in chunks {
        if let Err(fault) = reader.push(chunk.clone(), |framed| out.push(framed)) {
            return (out, Err(fault));
        }
    }
    let end = reader.finish();
    (out, end)
}

#[test]
fn frames_come_whole_and_long_ones_in_parts() {
    let bytes = Bytes::from([framed(b"one"), framed(b""), framed(b"longer")].concat());
    let (out, end) = read(3, std::slice::from_ref(&bytes));
    assert_eq!(end, Ok(()));
    assert_eq!(out[0], Framed::Whole(bytes.slice(..8)));
    assert_eq!(out[1], Framed::Whole(bytes.slice(8..13)));
    assert_eq!(
        out[2],
        Framed::Part {
            bytes: bytes.slice(13..),
            first: true,
            last: true
        }
    );
    assert_eq!(out[2].message(), b"longer");
}

#[test]
fn a_frame_within_one_chunk_is_not_copied() {
    let bytes = Bytes::from([framed(b"one"), framed(b"two")].concat());
    let (out, _) = read(64, std::slice::from_ref(&bytes));
    let inside = bytes.as_ptr_range();
    for framed in out {
        assert!(inside.contains(&framed.message().as_ptr()));
    }
}

#[test]
fn compressed_and_strange_frames_end_it_after_those_before() {
    for (flag, fault) in [(1, FrameFault::Compressed), (7, FrameFault::Flag)] {
        let bytes = Bytes::from([framed(b"one"), vec![flag]].concat());
        let (out, end) = read(64, &[bytes]);
        assert_eq!((out.len(), end), (1, Err(fault)));
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        cuts in prop::collection::vec(1_usize..12, 1..20),
        max in 0_usize..40,
        lost in 0_usize..4,
    ) {
        let mut bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
        bytes.truncate(bytes.len() - lost.min(bytes.len()));
        let mut rest = Bytes::from(bytes.clone());
        let mut chunks = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            chunks.push(rest.split_to((*cut).min(rest.len())));
        }
        let mut reader = FrameReader::new(max);
        let mut out = Vec::new();
        for chunk in chunks {
            reader.push(chunk, |framed| out.push(framed)).unwrap();
        }
        let cut_off = lost > 0 && !messages.is_empty();
        let whole_at_end = reader.finish().is_ok();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut passed = Vec::new();
        for framed in &out {
            match framed {
                Framed::Whole(bytes) => {
                    prop_assert!(framed.message().len() <= max);
                    seen.push(framed.message().to_vec());
                    passed.extend_from_slice(bytes);
                }
                Framed::Part { bytes, first, .. } => {
                    if *first {
                        seen.push(Vec::new());
                    }
                    seen.last_mut().unwrap().extend_from_slice(framed.message());
                    passed.extend_from_slice(bytes);
                }
            }
        }
        passed.extend_from_slice(&reader.take_held());
        prop_assert_eq!(&passed, &bytes, "nothing is lost");
        if cut_off {
            // Losing whole trailing frames is no fault of framing, losing a part of one is.
            prop_assert_eq!(whole_at_end, messages.last().unwrap().len() + 5 == lost);
        } else {
            prop_assert!(whole_at_end);
            prop_assert_eq!(&seen, &messages);
        }
    }
}
