//! [`Listing`]: the part of an agent's task list that is one caller's (`design.md` section 10).
//!
//! Agents behind a gateway often list everybody's tasks to everybody. A page of ours is filled from
//! as many pages of the agent's as it takes, within bounds; what is not for certain the caller's
//! is left out, counts and tokens included.

use super::Gate;
use super::page_token::PlaceInList;
use super::ports::{Claimed, IdKind, Owned, Owner, StoreError};
use crate::a2a::listing::{self, ListedTask, page_size};
use crate::a2a::{Binding, Call, ListQuery};
use crate::config::snapshot::Agent;
use bytes::Bytes;
use std::sync::Arc;

/// Pages of the agent's that one page of ours is made of at most.
const MAX_PAGES: usize = 10;
/// Once a page of ours has this many bytes, it is full.
const FULL: usize = 4 * 1024 * 1024;

/// A page token that we did not give to this caller for this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignToken;

/// Why no page can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPage {
    /// The agent's page cannot be read; the code is for the record.
    Unclear(&'static str),
    /// Nobody knows whose the tasks are.
    Store,
}

impl From<StoreError> for NoPage {
    fn from(StoreError: StoreError) -> NoPage {
        NoPage::Store
    }
}

/// One call for a list, while its page is being made.
pub struct Listing {
    gate: Arc<Gate>,
    agent: Arc<Agent>,
    owner: Owner,
    binding: Binding,
    rpc_id: Option<Box<str>>,
    context: Option<Box<str>>,
    query: ListQuery,
    bound: Vec<u8>,
    /// Where the agent's page begins that is waited for.
    place: PlaceInList,
    /// Whether our page begins where the list does.
    from_start: bool,
    /// How many tasks our page has at most; known with the first page.
    size: Option<u32>,
    tasks: Vec<Bytes>,
    bytes: usize,
    pages: usize,
    /// Another page of the agent's is needed.
    open: bool,
}

impl Listing {
    /// For a call that was read, and is not yet admitted.
    ///
    /// # Errors
    /// [`ForeignToken`].
    pub fn new(
        gate: &Arc<Gate>,
        agent: &Arc<Agent>,
        owner: Owner,
        call: &Call,
    ) -> Result<Listing, ForeignToken> {
        let query = call.list.as_deref().cloned().unwrap_or_default();
        let bound = bound(&owner, &agent.name, call.dialect.binding, &query);
        let place = match query.page_token.as_deref() {
            None => PlaceInList {
                token: None,
                skip: 0,
            },
            Some(token) => gate.page_tokens.open(token, &bound).ok_or(ForeignToken)?,
        };
        Ok(Listing {
            gate: gate.clone(),
            agent: agent.clone(),
            owner,
            binding: call.dialect.binding,
            rpc_id: call.rpc_id.clone(),
            context: call.context_id.clone(),
            from_start: query.page_token.is_none(),
            query,
            bound,
            place,
            size: None,
            tasks: Vec::new(),
            bytes: 0,
            pages: 0,
            open: false,
        })
    }

    /// What to ask the agent for: where the call goes and its body, each as the caller's unless
    /// they have to name another place in the list.
    pub fn asking(&mut self, path: &str, body: &Bytes) -> Option<(Box<str>, Bytes)> {
        self.open = false;
        if self.pages == 0 && self.query.page_token.is_none() {
            return Some((path.into(), body.clone()));
        }
        let token = self.place.token.as_deref().unwrap_or_default();
        listing::with_page_token(self.binding, path, body, token)
    }

    /// Whether another page of the agent's is needed.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Takes a page of the agent's. `None`: another one is needed.
    ///
    /// # Errors
    /// [`NoPage`]: the call ends without a list.
    pub async fn take(&mut self, reply: &Bytes) -> Result<Option<Bytes>, NoPage> {
        let page = listing::read(self.binding, reply).map_err(NoPage::Unclear)?;
        self.pages += 1;
        let size = *self
            .size
            .get_or_insert_with(|| page_size(self.query.page_size, page.size));
        let full = |tasks: &[Bytes], bytes: usize| tasks.len() >= size as usize || bytes >= FULL;
        let skip = std::mem::take(&mut self.place.skip);
        for (index, task) in page.tasks.iter().enumerate().skip(skip as usize) {
            if !self.is_own(task).await? {
                continue;
            }
            if full(&self.tasks, self.bytes) {
                let skip = u32::try_from(index).unwrap_or(u32::MAX);
                let here = PlaceInList {
                    skip,
                    ..self.place.clone()
                };
                return self.whole(Some(here)).await.map(Some);
            }
            self.bytes += task.raw.len();
            self.tasks.push(reply.slice_ref(task.raw));
        }
        let Some(next) = page.next else {
            return self.whole(None).await.map(Some);
        };
        self.place = PlaceInList {
            token: Some(next.into()),
            skip: 0,
        };
        if full(&self.tasks, self.bytes) || self.pages >= MAX_PAGES {
            let place = self.place.clone();
            return self.whole(Some(place)).await.map(Some);
        }
        self.open = true;
        Ok(None)
    }

    /// Whether a task is for certain the caller's. Seeing it prolongs its binding, as in any reply.
    async fn is_own(&self, task: &ListedTask<'_>) -> Result<bool, StoreError> {
        let store = &*self.gate.ownership;
        let agent = &self.agent.name;
        let Some(owned) = store.owned(agent, IdKind::Task, &task.id).await? else {
            return Ok(false);
        };
        let context = task.context_id.as_deref();
        if owned.owner != self.owner || differs(owned.context.as_deref(), context) {
            return Ok(false);
        }
        let asked = self.context.as_deref();
        if differs(asked, context) || differs(asked, owned.context.as_deref()) {
            return Ok(false);
        }
        let of_context = Owned {
            owner: self.owner.clone(),
            skill: None,
            context: None,
        };
        if let Some(context) = context
            && store
                .bind(agent, IdKind::Context, context, &of_context)
                .await?
                == Claimed::Foreign
        {
            return Ok(false);
        }
        let bound = store.bind(agent, IdKind::Task, &task.id, &owned).await?;
        Ok(bound != Claimed::Foreign)
    }

    /// Our page, with a token for what follows.
    async fn whole(&self, next: Option<PlaceInList>) -> Result<Bytes, NoPage> {
        let shown = self.tasks.len() as u64;
        let total = match &next {
            None if self.from_start => shown,
            _ => self.count().await?.max(shown),
        };
        let next = match next {
            None => None,
            Some(place) => {
                let sealed = self
                    .gate
                    .page_tokens
                    .seal(&*self.gate.random, &place, &self.bound);
                Some(sealed.ok_or(NoPage::Unclear("page_token"))?)
            }
        };
        let answer = listing::Answer {
            tasks: &self.tasks,
            next: next.as_deref(),
            size: self.size.unwrap_or_default(),
            total,
        };
        Ok(listing::write(
            self.binding,
            self.rpc_id.as_deref(),
            &answer,
        ))
    }

    async fn count(&self) -> Result<u64, StoreError> {
        let context = self.context.as_deref();
        let store = &self.gate.ownership;
        store
            .count_tasks(&self.agent.name, &self.owner, context)
            .await
    }
}

fn differs(known: Option<&str>, said: Option<&str>) -> bool {
    matches!((known, said), (Some(known), Some(said)) if known != said)
}

/// What a token is good for: these texts, none of which can run into the next.
fn bound(owner: &Owner, agent: &str, binding: Binding, query: &ListQuery) -> Vec<u8> {
    let size = query.page_size.unwrap_or_default().to_string();
    let mut bound = Vec::new();
    for text in [&*owner.0, agent, binding.label(), &size, &query.filters] {
        bound.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bound.extend_from_slice(text.as_bytes());
    }
    bound
}
