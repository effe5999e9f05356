#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

const ALL: Wish = Wish { key: 64, value: 64 };

/// Every token in words, or the flaw behind those that came before it.
fn tokens(chunks: &[&[u8]], wish: Wish) -> (Vec<String>, Result<bool, Flaw>) {
    let mut scanner = Scanner::new();
    let mut found = Vec::new();
    for chunk in chunks {
        let mut at = 0;
        loop {
            match scanner.next(chunk, &mut at, wish) {
                Ok(Some(token)) => found.push(word(token)),
                Ok(None) => break,
                Err(flaw) => return (found, Err(flaw)),
            }
        }
        assert_eq!(at, chunk.len());
    }
    (found, Ok(scanner.closed()))
}

fn word(token: Token<'_>) -> String {
    let (kind, text) = match token {
        Token::Key(text) => ("key", text),
        Token::Text(text) => ("text", text),
        Token::Number(text) => ("number", text),
        other => return format!("{other:?}"),
    };
    let cut = if text.whole { "" } else { " cut" };
    format!("{kind} {}{cut}", text.prefix())
}

#[test]
fn tokens_come_with_escapes_undone() {
    let document = r#"{"a\u0062":[-1.50e+3,true,null,"\ud83d\ude00\/"],"":{}}"#;
    let (found, end) = tokens(&[document.as_bytes()], ALL);
    assert_eq!(end, Ok(true));
    let expected = [
        "Open(Object)",
        "key ab",
        "Open(Array)",
        "number -1.50e+3",
        "Bool",
        "Null",
        "text 😀/",
        "Close",
        "key ",
        "Open(Object)",
        "Close",
        "Close",
    ];
    assert_eq!(found, expected);
}

#[test]
fn text_beyond_the_wish_is_cut_and_says_so() {
    let wish = Wish { key: 3, value: 2 };
    for document in [&br#"{"abcd":"\u0078yz"}"#[..], br#"{"abcd":"xyz"}"#] {
        for chunks in [vec![document], document.chunks(1).collect()] {
            let (found, _) = tokens(&chunks, wish);
            assert_eq!(found[1..3], ["key abc cut", "text xy cut"]);
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_not_whole() {
    for text in [
        r"\ud83d",
        r"\ud83dx",
        r"\ud83d\n",
        r"\ude00",
        r"\ud83d\ud83d",
    ] {
        let (found, _) = tokens(&[format!("[\"{text}\"]").as_bytes()], ALL);
        assert!(found[1].ends_with(" cut"), "{text}: {found:?}");
    }
    let (found, _) = tokens(&[br#"["\ud83d\ud83d\ude00"]"#], ALL);
    assert_eq!(found[1], "text 😀 cut");
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    let bad: [&[u8]; 7] = [
        b"\xFF",
        b"\xC0\x80",
        b"\xE0\x80\x80",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xC3",
        b"\x80",
    ];
    for text in bad {
        let document = [b"[\"", text, b"\"]"].concat();
        assert_eq!(tokens(&[&document], ALL).1, Err(Flaw::Syntax), "{text:?}");
    }
}

#[test]
fn levels_are_counted_exactly() {
    for (levels, end) in [(MAX_DEPTH, Ok(true)), (MAX_DEPTH + 1, Err(Flaw::TooDeep))] {
        let document = "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(tokens(&[document.as_bytes()], ALL).1, end);
    }
}

#[test]
fn brackets_must_match() {
    for document in [
        "[}",
        "{]",
        "[[}]",
        "{\"a\":[}}",
        "[1,]",
        "{\"a\":1,}",
        "[,1]",
        "{1:1}",
    ] {
        assert_eq!(
            tokens(&[document.as_bytes()], ALL).1,
            Err(Flaw::Syntax),
            "{document}"
        );
    }
}

/// Text that is often JSON, or nearly.
fn near_json() -> impl Strategy<Value = String> {
    let scrap = proptest::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"a\"",
        "\"\"",
        "\"b\":",
        "1",
        "-",
        "0",
        ".5",
        "e1",
        "E+2",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\"\\u00e9\"",
        "\"\\x\"",
        "\"é😀\"",
        "\"",
        "\\",
        "[1,2]",
        "{\"k\":[]}",
        "\u{1}",
        "\u{feff}",
    ]);
    proptest::collection::vec(scrap, 0..12).prop_map(|scraps| format!("[{}]", scraps.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn accepts_what_serde_json_accepts(document in near_json()) {
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&document).is_ok();
        let ours = tokens(&[document.as_bytes()], ALL).1 == Ok(true);
        prop_assert_eq!(ours, theirs, "{}", document);
    }

    #[test]
    fn text_is_utf_8_exactly_when_the_standard_library_says_so(
        text in proptest::collection::vec(
            prop_oneof![Just(0xE0u8), Just(0xED), Just(0xF0), Just(0xF4), 0x80u8..0xC0, 0x80u8.., Just(b'x')],
            0..40,
        ),
    ) {
        let document = [b"[\"", &text[..], b"\"]"].concat();
        let ours = tokens(&[&document], ALL).1 == Ok(true);
        prop_assert_eq!(ours, std::str::from_utf8(&text).is_ok());
    }

    #[test]
    fn any_chunking_gives_the_same_tokens(document in near_json(), size in 1usize..7) {
        let whole = tokens(&[document.as_bytes()], ALL);
        let chunks: Vec<&[u8]> = document.as_bytes().chunks(size).collect();
        prop_assert_eq!(whole, tokens(&chunks, ALL));
    }
}
