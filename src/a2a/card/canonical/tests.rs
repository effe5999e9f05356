#![allow(clippy::unwrap_used)]
use super::super::read::read;
use super::*;

fn forms(card: &str) -> Result<Canonical, NotCanonical> {
    match read(card.as_bytes()).unwrap() {
        Node::Object(members) => canonical(&members),
        Node::Array(_) | Node::Text(..) | Node::Scalar(_) => unreachable!(),
    }
}

/// The vectors of RFC 8785 appendix B, and the edges of each branch.
#[test]
fn numbers_are_written_as_ecmascript_does() {
    let by_bits: [(u64, &str); 23] = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, text) in by_bits {
        assert_eq!(ecmascript(f64::from_bits(bits)), text, "{bits:016x}");
    }
    for (number, text) in [
        (1.0, "1"),
        (10.0, "10"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (1e21, "1e+21"),
        (123e18, "123000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-7, "1.25e-7"),
        (4.35, "4.35"),
        (1.5e-6, "0.0000015"),
        (100.5, "100.5"),
        (12_345_678_901_234_567_890.0, "12345678901234567000"),
    ] {
        assert_eq!(ecmascript(number), text);
    }
}

/// Whatever is written reads back as the same double.
#[test]
fn numbers_read_back() {
    let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..20_000 {
        bits = bits
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let number = f64::from_bits(bits);
        if number.is_finite() {
            assert_eq!(ecmascript(number).parse::<f64>(), Ok(number), "{bits:016x}");
        }
    }
}

/// RFC 8785 section 3.2.3: by UTF-16 code units, not by code points; section 3.2.2.2: escapes.
#[test]
fn names_are_sorted_and_texts_escaped() {
    let params = r#"{"\u20ac":"Euro","\r":"CR","\ufb33":"Dalet","1":"One","\ud83d\ude00":"Smile",
        "\u0080":"Control","\u00f6":"O","</script>":"x"}"#;
    let card = format!(r#"{{"capabilities":{{"extensions":[{{"uri":"u","params":{params}}}]}}}}"#);
    let expected = "{\"\\r\":\"CR\",\"1\":\"One\",\"</script>\":\"x\",\"\u{80}\":\"Control\",\"\u{f6}\":\"O\",\"\u{20ac}\":\"Euro\",\"\u{1f600}\":\"Smile\",\"\u{fb33}\":\"Dalet\"}";
    let spec = forms(&card).unwrap().spec;
    assert_eq!(
        spec,
        format!(
            "{{\"capabilities\":{{\"extensions\":[{{\"params\":{expected},\"uri\":\"u\"}}]}}}}"
        )
    );
    let text = forms(r#"{"name":"\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\/\b\f\t\r\u007f"}"#);
    assert_eq!(
        text.unwrap().spec,
        "{\"name\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\b\\f\\t\\r\u{7f}\"}"
    );
}

/// The specification's worked example, section 8.4.1.
#[test]
fn the_specifications_example() {
    let card = r#"{"name":"Example Agent","description":"","capabilities":{"streaming":false,
        "pushNotifications":false,"extensions":[]},"skills":[]}"#;
    let forms = forms(card).unwrap();
    assert_eq!(
        forms.spec,
        r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#
    );
    assert_eq!(
        forms.stripped,
        r#"{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}"#
    );
}

#[test]
fn what_1_0_does_not_know_is_in_neither_form() {
    let card = r#"{"name":"w","url":"http://x","additionalInterfaces":[],"security":[],"x":1,
        "signatures":[{"protected":"a","signature":"b"}],
        "securitySchemes":{"b":{"type":"http","httpAuthSecurityScheme":{"scheme":"Bearer","y":1}}},
        "skills":[{"id":"a","security":[{}]}]}"#;
    let forms = forms(card).unwrap();
    assert_eq!(
        forms.spec,
        r#"{"name":"w","securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"skills":[{"id":"a"}]}"#
    );
    assert_eq!(forms.spec, forms.stripped);
}

#[test]
fn empty_things_are_left_out_where_the_form_says_so() {
    let card = r#"{"name":"","documentationUrl":"","iconUrl":null,"provider":{},
        "securityRequirements":[{"schemes":{"b":{"list":[]}}}],
        "supportedInterfaces":[{"url":"u","tenant":""}],
        "capabilities":{"extensions":[{"uri":"u","required":false,"description":"",
        "params":{"a":null,"b":[],"c":"","d":[null,"",1.0],"e":false,"f":{}}}]},
        "skills":[{"id":"","tags":[],"examples":[]}]}"#;
    let forms = forms(card).unwrap();
    assert_eq!(
        forms.spec,
        r#"{"capabilities":{"extensions":[{"params":{"a":null,"b":[],"c":"","d":[null,"",1],"e":false,"f":{}},"uri":"u"}]},"documentationUrl":"","name":"","provider":{},"securityRequirements":[{"schemes":{"b":{}}}],"skills":[{"id":"","tags":[]}],"supportedInterfaces":[{"url":"u"}]}"#
    );
    assert_eq!(
        forms.stripped,
        r#"{"capabilities":{"extensions":[{"params":{"d":[1],"e":false},"uri":"u"}]},"supportedInterfaces":[{"url":"u"}]}"#
    );
}

#[test]
fn what_readers_may_take_differently_has_no_form() {
    for card in [
        r#"{"name":5}"#,
        r#"{"name":"w","supported_interfaces":[]}"#,
        r#"{"name":"w","Skills":[]}"#,
        r#"{"skills":{}}"#,
        r#"{"skills":["a"]}"#,
        r#"{"defaultInputModes":[null]}"#,
        r#"{"capabilities":{"streaming":"true"}}"#,
        r#"{"capabilities":{"extensions":[{"params":[]}]}}"#,
        r#"{"securitySchemes":{"a":{"mtlsSecurityScheme":{},"apiKeySecurityScheme":{}}}}"#,
    ] {
        assert_eq!(forms(card), Err(NotCanonical), "{card}");
    }
    // This one is not even read.
    assert!(read(br#"{"capabilities":{"extensions":[{"params":{"n":1e999}}]}}"#).is_err());
}
