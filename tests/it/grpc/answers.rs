//! Our own answers: trailers that any client library reads (field case FC-46).

use crate::support::proto::delimited;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use portcullis::a2a::{Binding, Dialect, Fault, GRPC, Version, render};

/// `google.rpc.Status` with one `ErrorInfo`, by the test's own encoder.
fn status(code: u8, message: &str, reason: &str, domain: &str, public: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    delimited(1, b"code", &mut entry);
    delimited(2, public.as_bytes(), &mut entry);
    let mut info = Vec::new();
    delimited(1, reason.as_bytes(), &mut info);
    delimited(2, domain.as_bytes(), &mut info);
    delimited(3, &entry, &mut info);
    let mut any = Vec::new();
    delimited(1, b"type.googleapis.com/google.rpc.ErrorInfo", &mut any);
    delimited(2, &info, &mut any);
    let mut out = vec![0x08, code];
    delimited(2, message.as_bytes(), &mut out);
    delimited(3, &any, &mut out);
    out
}

#[test]
fn every_fault_has_its_status_and_its_details() {
    for version in [Version::V0_3, Version::V1_0] {
        let dialect = Dialect {
            binding: Binding::Grpc,
            version,
        };
        for fault in Fault::ALL {
            let answer = render(*fault, Some(dialect), None);
            assert_eq!((answer.status, answer.content_type), (200, GRPC));
            assert!(answer.body.is_empty(), "trailers alone");
            let grpc = answer.grpc.unwrap();
            let entry = fault.entry();
            assert_eq!(grpc.code, entry.grpc_status);
            assert!((1..=16).contains(&grpc.code), "{fault:?}");
            // Clients of 0.3 tell an error of A2A by its name in front.
            let named = version == Version::V0_3 && entry.domain == "a2a-protocol.org";
            let expected = match named {
                true => format!("{}: {}", entry.error_type, entry.message),
                false => entry.message.to_owned(),
            };
            assert_eq!(grpc.message, expected);
            let plain = grpc.message.bytes();
            assert!(
                plain
                    .clone()
                    .all(|b| (0x20..0x7f).contains(&b) && b != b'%'),
                "needs percent-encoding: {}",
                grpc.message
            );
            let details = STANDARD_NO_PAD.decode(grpc.details.as_bytes()).unwrap();
            let expected = status(
                entry.grpc_status,
                entry.message,
                entry.reason,
                entry.domain,
                entry.public_reason,
            );
            assert_eq!(details, expected, "{fault:?}");
        }
    }
}

#[test]
fn the_details_of_one_fault_byte_by_byte() {
    let dialect = Dialect {
        binding: Binding::Grpc,
        version: Version::V1_0,
    };
    let grpc = render(Fault::TaskNotFound, Some(dialect), None)
        .grpc
        .unwrap();
    // As the `google.rpc` messages of googleapis-common-protos write it, without padding.
    let expected = include_str!("../../cases/grpc/task-not-found.txt");
    assert_eq!(grpc.details, expected.trim());
}
