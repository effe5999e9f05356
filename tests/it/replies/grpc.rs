//! gRPC replies of the case files, written by the packages' own descriptors.

use crate::support::proto::{encode, framed, method_of};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

/// The body and the trailers of a case.
///
/// A frame is a list of fields, as `support::proto` has them, or `{"hex": …}`: bytes that stand in
/// the body as they are. `cut` drops bytes from the end.
pub(super) fn reply(case: &Value, version: &str) -> (Vec<u8>, HeaderMap) {
    let package = match version {
        "0.3" => "a2a.v1",
        _ => "lf.a2a.v1",
    };
    let method = match (case["operation"].as_str().unwrap_or("SendMessage"), version) {
        ("SubscribeToTask", "0.3") => "TaskSubscription",
        ("ListTaskPushNotificationConfigs", "0.3") => "ListTaskPushNotificationConfig",
        (method, _) => method,
    };
    let (_, reply, _) = method_of(package, method).unwrap();
    let mut body = Vec::new();
    for frame in case["frames"].as_array().unwrap() {
        match frame["hex"].as_str() {
            Some(hex) => body.extend(bytes(hex)),
            None => body.extend(framed(&encode(package, &reply, frame))),
        }
    }
    let cut = case["cut"].as_u64().unwrap_or(0) as usize;
    body.truncate(body.len() - cut);
    let mut trailers = HeaderMap::new();
    for field in case["trailers"].as_array().into_iter().flatten() {
        let name = field[0]
            .as_str()
            .unwrap()
            .parse::<http::HeaderName>()
            .unwrap();
        trailers.append(
            name,
            HeaderValue::from_str(field[1].as_str().unwrap()).unwrap(),
        );
    }
    (body, trailers)
}

fn bytes(hex: &str) -> impl Iterator<Item = u8> + '_ {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
}
