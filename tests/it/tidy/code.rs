//! Reading Rust source well enough for the rules: comments, tests, module paths.

/// Code without comments and without tests, line by line: the numbers stay right.
pub(super) fn code(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("/tests.rs") || path.contains("/tests/") {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let tests = (0..lines.len()).find(|&i| {
        let item = lines[i..]
            .iter()
            .find(|line| !line.trim_start().starts_with("#["));
        lines[i].trim() == "#[cfg(test)]" && item.is_some_and(|line| line.contains("mod tests {"))
    });
    lines[..tests.unwrap_or(lines.len())]
        .iter()
        .map(|line| without_comment(line).to_owned())
        .collect()
}

pub(super) fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let bytes = line.as_bytes();
    for i in 0..bytes.len() {
        match bytes[i] {
            b'"' if i == 0 || (bytes[i - 1] != b'\\' && bytes[i - 1] != b'\'') => quoted = !quoted,
            b'/' if !quoted && bytes.get(i + 1) == Some(&b'/') => return &line[..i],
            _ => {}
        }
    }
    line
}

/// Positions at which `word` stands alone in `line`.
pub(super) fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let starts_in_word = word.starts_with(part) && line[..at].ends_with(part);
            let ends_in_word = word.ends_with(part) && line[at + word.len()..].starts_with(part);
            !starts_in_word && !ends_in_word
        })
}

/// Module path of a file: `src/a2a/card/mod.rs` is `[a2a, card]`.
pub(super) fn module_of(path: &str) -> Vec<&str> {
    let inner = path.strip_prefix("src/").unwrap_or(path);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut module: Vec<&str> = inner.split('/').collect();
    if module.last() == Some(&"mod") {
        module.pop();
    }
    module
}

/// Absolute paths of ours that the code names, one or two segments of each, with line numbers.
pub(super) fn named_paths(path: &str, code: &[String]) -> Vec<(usize, Vec<String>)> {
    let own = module_of(path);
    let text = code.join("\n");
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for at in words(&text, start) {
            let line = text[..at].matches('\n').count() + 1;
            let before = &text[..at];
            let mut base: Vec<&str> = Vec::new();
            let mut rest = &text[at + start.len()..];
            if start == "super::" {
                if before.ends_with("super::") {
                    continue;
                }
                let mut up = 1;
                while let Some(next) = rest.strip_prefix("super::") {
                    rest = next;
                    up += 1;
                }
                base = own[..own.len().saturating_sub(up)].to_vec();
            }
            for tail in tails(rest) {
                let whole = base.iter().map(|s| (*s).to_owned()).chain(tail);
                found.push((line, whole.take(2).collect()));
            }
        }
    }
    found
}

/// `a::b` is one path, `{a::b, c}` are two.
pub(super) fn tails(rest: &str) -> Vec<Vec<String>> {
    let path = |text: &str| -> Vec<String> {
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let segments = text[..end.unwrap_or(text.len())].split("::");
        segments
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![path(rest)];
    };
    let (mut depth, mut from, mut all) = (0, 0, Vec::new());
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                all.push(path(group[from..i].trim()));
                from = i + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    all.retain(|path| !path.is_empty());
    all
}
