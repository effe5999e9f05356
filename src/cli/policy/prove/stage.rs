//! [`Stage`]: live parts, on which one test after the other is played.

use super::Sources;
use super::count::{Counts, Elsewhere, built_in};
use super::report::{Setting, Standing};
use super::row::{Row, Tried};
use super::running::Running;
use super::send::{Ask, PATIENCE, Reply};
use super::separate::{Prepared, Read, Separate, fresh_id, names};
use super::token::Credential;
use crate::a2a::Operation;
use crate::adapters::fetch::plain_mannered;
use crate::config::snapshot::{Interface, Snapshot};
use crate::pipeline::ports::Owner;
use crate::policy::decision::Effect;
use crate::policy::trial::{Trial, is_message};
use crate::policy::{Asked, PolicySet};
use reqwest::Client;
use std::error::Error;
use std::sync::Arc;

/// Which live parts.
pub(super) enum Parts<'a> {
    /// A gateway of our own.
    Separate {
        policy: Arc<PolicySet>,
        real_agents: bool,
    },
    /// One that runs: its URL, and the command that makes tokens.
    Running(&'a str, &'a str),
}

/// The gateway.
enum Gateway {
    Separate(Box<Separate>),
    Running(Running),
}

/// Live parts.
pub(super) struct Stage {
    gateway: Gateway,
    counters: Elsewhere,
    http: Client,
    snapshot: Arc<Snapshot>,
    /// By position of the agent: what it had counted after the last test that it was in.
    last: Vec<Option<Counts>>,
}

impl Stage {
    pub(super) async fn open(
        parts: Parts<'_>,
        snapshot: Snapshot,
        counters: Elsewhere,
    ) -> Result<Stage, Box<dyn Error>> {
        let http = plain_mannered(None, PATIENCE, Some(PATIENCE)).build()?;
        let gateway = match parts {
            Parts::Separate {
                policy,
                real_agents,
            } => {
                let separate = Separate::start(snapshot, policy, real_agents).await?;
                Gateway::Separate(Box::new(separate))
            }
            Parts::Running(url, command) => {
                Gateway::Running(Running::open(&http, url, command, snapshot).await?)
            }
        };
        let snapshot = match &gateway {
            Gateway::Separate(separate) => separate.snapshot(),
            Gateway::Running(running) => running.snapshot.clone(),
        };
        Ok(Stage {
            last: snapshot.agents.iter().map(|_| None).collect(),
            gateway,
            counters,
            http,
            snapshot,
        })
    }

    /// Whether the agents are ours.
    fn builds_in(&self) -> Option<&Separate> {
        match &self.gateway {
            Gateway::Separate(separate) if !separate.agents.is_empty() => Some(separate),
            Gateway::Separate(_) | Gateway::Running(_) => None,
        }
    }

    fn interfaces(&self, agent: usize) -> Arc<[Interface]> {
        match &self.gateway {
            Gateway::Separate(separate) => separate.interfaces(agent),
            Gateway::Running(running) => running.interfaces(agent),
        }
    }

    /// Plays one test.
    pub(super) async fn play<'t>(&mut self, trial: &'t Trial) -> Row<'t> {
        let tried = self.attempt(trial).await;
        if let Gateway::Separate(separate) = &self.gateway {
            separate.rest();
        }
        Row { trial, tried }
    }

    async fn attempt(&mut self, trial: &Trial) -> Result<Tried, String> {
        let calling = &trial.call;
        let snapshot = self.snapshot.clone();
        let agent = snapshot.agents.get(calling.agent);
        let agent = agent.ok_or("its agent is not there")?;
        self.can_be_tried(trial)?;
        let interfaces = self.interfaces(calling.agent);
        // Before anything is prepared for it.
        Ask::of(agent, &interfaces, calling, &Prepared::default())?;
        let credential = match &self.gateway {
            Gateway::Separate(separate) => separate.credential(trial)?,
            Gateway::Running(running) => running.credential(trial).await?,
        };
        let prepared = self.prepared(trial, &credential).await?;
        let ask = Ask::of(agent, &interfaces, calling, &prepared)?;
        let before = self.count(calling.agent).await?;
        let all_before = self.builds_in().map(built_in);
        let mut wrong = Vec::new();
        let expected = self.last.get(calling.agent).copied().flatten();
        if expected.is_some_and(|last| last.plus(prepared.sent) != before) {
            wrong.push("its agent counted while nothing was sent".to_owned());
        }
        let proof = match &self.gateway {
            Gateway::Separate(separate) if credential.bound => {
                Some(separate.proof(&credential, &ask)?)
            }
            Gateway::Separate(_) | Gateway::Running(_) => None,
        };
        let base = match &self.gateway {
            Gateway::Separate(separate) => separate.base(),
            Gateway::Running(running) => running.base.clone(),
        };
        let reply = match ask.send(&self.http, &base, &credential, proof).await {
            Ok(reply) => Some(reply),
            Err(why) => {
                wrong.push(why);
                None
            }
        };
        let after = self.count_after(trial, before, reply.as_ref()).await;
        let counts = match after {
            Ok(after) => {
                if let Some(last) = self.last.get_mut(calling.agent) {
                    *last = Some(after);
                }
                let counts = after.since(before);
                if counts.is_none() {
                    wrong.push("its agent's counter went backwards".to_owned());
                }
                counts
            }
            Err(why) => {
                wrong.push(why);
                None
            }
        };
        if let (Some(before), Some(separate)) = (all_before, self.builds_in()) {
            let moved = before.into_iter().zip(built_in(separate)).enumerate();
            let mut others = moved.filter(|(agent, _)| *agent != calling.agent);
            if others.any(|(_, (before, after))| before != after) {
                wrong.push("another agent counted".to_owned());
            }
        }
        let (http, rpc_code, request_id) = match reply {
            Some(Reply {
                status,
                rpc_code,
                request_id,
            }) => (Some(status), rpc_code, request_id),
            None => (None, None, None),
        };
        Ok(Tried {
            http,
            rpc_code,
            request_id,
            counts,
            wrong,
        })
    }

    /// Has the ids that a call names made what the test says.
    async fn prepared(
        &mut self,
        trial: &Trial,
        credential: &Credential,
    ) -> Result<Prepared, String> {
        let Gateway::Separate(separate) = &self.gateway else {
            return Ok(Prepared {
                task: names(&trial.call).then(|| (fresh_id(), None)),
                ..Prepared::default()
            });
        };
        let owner = credential.owner.clone();
        let owner = owner.unwrap_or_else(|| Owner::new("nobody", "at all"));
        let prepared = separate.prepare(trial, &owner, &self.http).await;
        if prepared.is_err()
            && let Some(last) = self.last.get_mut(trial.call.agent)
        {
            // How much of it was done is not known.
            *last = None;
        }
        prepared
    }

    /// What cannot be shown with these parts, known before anything is sent.
    fn can_be_tried(&self, trial: &Trial) -> Result<(), String> {
        let calling = &trial.call;
        let create = Asked::Operation(Operation::CreateTaskPushNotificationConfig);
        if calling.asked == create && trial.expect.effect == Effect::Allow {
            return Err("the host of a webhook is not looked up here".to_owned());
        }
        let Gateway::Running(_) = &self.gateway else {
            return Ok(());
        };
        if names(calling) && calling.owned {
            return Err("no task of its caller is known at a gateway that runs".to_owned());
        }
        Ok(())
    }

    async fn count(&self, agent: usize) -> Result<Counts, String> {
        if let Some(separate) = self.builds_in() {
            let counts = built_in(separate).get(agent).copied();
            return counts.ok_or_else(|| "its agent is not there".to_owned());
        }
        self.counters.read(&self.http, self.name(agent)).await
    }

    async fn count_after(
        &self,
        trial: &Trial,
        before: Counts,
        reply: Option<&Reply>,
    ) -> Result<Counts, String> {
        let agent = trial.call.agent;
        let answered = reply.is_some_and(|r| r.status < 300 && r.rpc_code.is_none());
        if self.builds_in().is_some() || !is_message(trial.call.asked) || !answered {
            return self.count(agent).await;
        }
        self.counters
            .read_after(&self.http, self.name(agent), before)
            .await
    }

    fn name(&self, agent: usize) -> &str {
        self.snapshot
            .agents
            .get(agent)
            .map_or("", |agent| &agent.name)
    }

    /// Agents that counted after their last test.
    pub(super) async fn stray(&self) -> Vec<String> {
        let mut stray = Vec::new();
        for (agent, last) in self.last.iter().enumerate() {
            let Some(last) = last else { continue };
            match self.count(agent).await {
                Ok(now) if now == *last => {}
                Ok(_) => stray.push(format!(
                    "agent {} counted after its last test",
                    self.name(agent)
                )),
                Err(why) => stray.push(format!("agent {}: {why}", self.name(agent))),
            }
        }
        stray
    }

    /// What it consists of.
    pub(super) fn setting(&self, sources: &Sources, passed_over: Vec<String>) -> Setting {
        let standing = match (&self.gateway, self.builds_in()) {
            (Gateway::Running(running), _) => Standing::Running(running.base.clone()),
            (Gateway::Separate(_), None) => Standing::RealAgents,
            (Gateway::Separate(_), Some(_)) => Standing::BuiltIn,
        };
        Setting::new(standing, &self.snapshot, sources.clone(), passed_over)
    }

    /// Stops what is ours; the journal of a gateway of our own.
    pub(super) async fn finish(self) -> Result<Option<Read>, Box<dyn Error>> {
        match self.gateway {
            Gateway::Separate(separate) => separate.finish().await.map(Some),
            Gateway::Running(_) => Ok(None),
        }
    }
}
