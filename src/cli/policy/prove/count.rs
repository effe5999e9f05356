//! What agents say that they got.

use super::separate::Separate;
use reqwest::{Client, Url};
use serde_json::Value;
use std::time::Duration;

/// Largest answer of a counter.
const MAX_ANSWER: usize = 64 * 1024;
/// How long a counter may be behind an answered message, and between looks at it.
const SETTLE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// The counts of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests but for its card, where it counts them.
    pub(super) requests: Option<u64>,
    /// Messages that it acted on.
    pub(super) executions: u64,
}

impl Counts {
    /// What was counted since; `None` when it counts backwards.
    pub(super) fn since(self, before: Counts) -> Option<Counts> {
        let requests = match (self.requests, before.requests) {
            (Some(now), Some(then)) => Some(now.checked_sub(then)?),
            (_, _) => None,
        };
        Some(Counts {
            requests,
            executions: self.executions.checked_sub(before.executions)?,
        })
    }

    pub(super) fn plus(self, (requests, executions): (u64, u64)) -> Counts {
        Counts {
            requests: self.requests.map(|known| known + requests),
            executions: self.executions + executions,
        }
    }
}

/// Where counters of agents that are not built in are read.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// URLs by name of the agent; `None` is everybody's.
    urls: Vec<(Option<String>, Url)>,
    /// Names from the top of the answer down.
    path: Vec<String>,
}

impl Elsewhere {
    /// Reads `[AGENT=]URL` and `a.b.c`.
    ///
    /// # Errors
    /// What is no URL.
    pub(super) fn parse(urls: &[String], path: &str) -> Result<Elsewhere, String> {
        let one = |text: &String| {
            let (agent, url) = match text.split_once('=') {
                Some((agent, url)) if !agent.contains("://") => (Some(agent.to_owned()), url),
                Some(_) | None => (None, text.as_str()),
            };
            match Url::parse(url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Ok((agent, url)),
                Ok(_) | Err(_) => Err(format!("`{url}` is no HTTP URL")),
            }
        };
        Ok(Elsewhere {
            urls: urls.iter().map(one).collect::<Result<_, _>>()?,
            path: path.split('.').map(str::to_owned).collect(),
        })
    }

    fn url(&self, agent: &str) -> Option<&Url> {
        let own = self
            .urls
            .iter()
            .find(|(name, _)| name.as_deref() == Some(agent));
        let all = || self.urls.iter().find(|(name, _)| name.is_none());
        own.or_else(all).map(|(_, url)| url)
    }

    /// The counter of an agent.
    ///
    /// # Errors
    /// It is not named, or does not say a number.
    pub(super) async fn read(&self, http: &Client, agent: &str) -> Result<Counts, String> {
        let url = self
            .url(agent)
            .ok_or("its agent has no counter; name it with --counter-url")?;
        let unread =
            |error: reqwest::Error| format!("its counter cannot be read: {}", error.without_url());
        let mut response = http.get(url.clone()).send().await.map_err(unread)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unread)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                return Err("its counter says too much".to_owned());
            }
        }
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let found = self
            .path
            .iter()
            .try_fold(&answer, |value, name| value.get(name));
        match found.and_then(Value::as_u64) {
            Some(executions) => Ok(Counts {
                requests: None,
                executions,
            }),
            None => Err(format!(
                "its counter has no number at `{}`",
                self.path.join(".")
            )),
        }
    }

    /// The same after a message was answered, once it has counted or had time to.
    pub(super) async fn read_after(
        &self,
        http: &Client,
        agent: &str,
        before: Counts,
    ) -> Result<Counts, String> {
        let mut counts = self.read(http, agent).await?;
        let looks = SETTLE.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if counts.executions != before.executions {
                break;
            }
            tokio::time::sleep(LOOK).await;
            counts = self.read(http, agent).await?;
        }
        Ok(counts)
    }
}

/// The counts of the built-in agents, by their positions.
pub(super) fn built_in(separate: &Separate) -> Vec<Counts> {
    let agents = separate.agents.iter();
    agents
        .map(|agent| Counts {
            requests: Some(agent.counters().requests()),
            executions: agent.counters().executions(),
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_one_agents_or_everybodys() {
        let urls = ["one=http://a/x?y=z", "http://b/?q=1"].map(str::to_owned);
        let all = Elsewhere::parse(&urls, "a.b").unwrap();
        let url = |agent: &str| all.url(agent).map(Url::as_str);
        assert_eq!(url("one"), Some("http://a/x?y=z"));
        assert_eq!(url("two"), Some("http://b/?q=1"));
        assert_eq!(all.path, ["a", "b"]);
        for wrong in ["one=", "ftp://a", "one=a:1"] {
            assert!(
                Elsewhere::parse(&[wrong.to_owned()], "a").is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_was_counted_since_is_never_less_than_nothing() {
        let counts = |requests, executions| Counts {
            requests,
            executions,
        };
        let before = counts(Some(2), 1);
        assert_eq!(counts(Some(3), 1).since(before), Some(counts(Some(1), 0)));
        assert_eq!(counts(None, 2).since(before), Some(counts(None, 1)));
        assert_eq!(counts(Some(1), 1).since(before), None);
        assert_eq!(counts(Some(2), 0).since(before), None);
        assert_eq!(before.plus((2, 1)), counts(Some(4), 2));
    }
}
