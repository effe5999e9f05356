//! One stream of the agent: plays its act.

use super::{Closing, H2Act, H2Answer, H2Then, Shared, fields, head};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{PingPong, Reason, RecvStream, SendStream};
use std::sync::Arc;
use tokio::sync::mpsc;

/// A stream and what it has in common with the others.
pub(super) struct Stream {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) closing: mpsc::UnboundedSender<Closing>,
    pub(super) pings: Arc<tokio::sync::Mutex<PingPong>>,
}

impl Stream {
    pub(super) async fn play(
        self,
        act: H2Act,
        mut body: RecvStream,
        mut respond: SendResponse<Bytes>,
    ) {
        match act {
            H2Act::Answer(answer) => {
                if self.read(&mut body).await {
                    self.answer(&mut respond, answer).await;
                }
            }
            H2Act::Early(answer) => {
                self.answer(&mut respond, answer).await;
                self.read(&mut body).await;
            }
            H2Act::EarlyUnread(answer) => {
                self.answer(&mut respond, answer).await;
                self.until_reset(&mut respond).await;
                drop(body);
            }
            H2Act::Refuse => respond.send_reset(Reason::REFUSED_STREAM),
            H2Act::GoAwayBelow => panic!("only at the start of a plaintext connection"),
            H2Act::GoAwayAndClose => {
                self.read(&mut body).await;
                let _ = self.closing.send(Closing::SaysSo);
                self.until_reset(&mut respond).await;
            }
            H2Act::HeadThenClose => {
                let _ = self.closing.send(Closing::Silently);
            }
            H2Act::ReadThenClose => {
                self.read(&mut body).await;
                let _ = self.closing.send(Closing::Silently);
            }
            H2Act::AnswerThenReset(part) => {
                self.read(&mut body).await;
                if let Some(mut writer) = self.begin(&mut respond, part).await {
                    // What is still queued would be dropped by the reset.
                    let _ = self.pings.lock().await.ping(h2::Ping::opaque()).await;
                    writer.send_reset(Reason::INTERNAL_ERROR);
                }
            }
            H2Act::AnswerThenHang(part) => {
                self.read(&mut body).await;
                if let Some(mut writer) = self.begin(&mut respond, part).await {
                    let _ = std::future::poll_fn(|c| writer.poll_reset(c)).await;
                    self.shared
                        .note(|counts| counts.seen[self.index].reset = true);
                }
            }
            H2Act::ReadThenReset(reason) => {
                self.read(&mut body).await;
                respond.send_reset(reason);
            }
            H2Act::Hang => {
                self.read(&mut body).await;
                self.until_reset(&mut respond).await;
            }
            H2Act::NeverRead => {
                self.until_reset(&mut respond).await;
                drop(body);
            }
            H2Act::Fed(answer, fed, then) => {
                self.read(&mut body).await;
                self.feed(&mut respond, answer, fed, then).await;
            }
        }
    }

    async fn read(&self, body: &mut RecvStream) -> bool {
        while let Some(chunk) = body.data().await {
            let Ok(chunk) = chunk else {
                self.shared
                    .note(|counts| counts.seen[self.index].reset = true);
                return false;
            };
            let _ = body.flow_control().release_capacity(chunk.len());
            self.shared
                .note(|counts| counts.seen[self.index].body.extend_from_slice(&chunk));
        }
        self.shared
            .note(|counts| counts.seen[self.index].complete = true);
        true
    }

    async fn until_reset(&self, respond: &mut SendResponse<Bytes>) {
        let _ = std::future::poll_fn(|context| respond.poll_reset(context)).await;
        self.shared
            .note(|counts| counts.seen[self.index].reset = true);
    }

    /// The head and the body of an answer that goes on.
    async fn begin(
        &self,
        respond: &mut SendResponse<Bytes>,
        answer: H2Answer,
    ) -> Option<SendStream<Bytes>> {
        let mut writer = respond.send_response(head(&answer), false).ok()?;
        let mut left = Bytes::from(answer.body);
        while !left.is_empty() {
            writer.reserve_capacity(left.len());
            let many = std::future::poll_fn(|c| writer.poll_capacity(c)).await?;
            let part = left.split_to(many.ok()?.min(left.len()));
            writer.send_data(part, false).ok()?;
        }
        Some(writer)
    }

    async fn answer(&self, respond: &mut SendResponse<Bytes>, answer: H2Answer) {
        let only_head = answer.body.is_empty() && answer.trailers.is_none();
        let Ok(mut writer) = respond.send_response(head(&answer), only_head) else {
            return;
        };
        if only_head {
            return;
        }
        let last = answer.trailers.is_none();
        let mut left = Bytes::from(answer.body);
        while !left.is_empty() {
            writer.reserve_capacity(left.len());
            let Some(Ok(many)) = std::future::poll_fn(|c| writer.poll_capacity(c)).await else {
                return;
            };
            let part = left.split_to(many.min(left.len()));
            let _ = writer.send_data(part, last && left.is_empty());
        }
        if let Some(trailers) = answer.trailers {
            let _ = writer.send_trailers(fields(&trailers));
        }
    }

    async fn feed(
        &self,
        respond: &mut SendResponse<Bytes>,
        answer: H2Answer,
        mut fed: mpsc::UnboundedReceiver<Vec<u8>>,
        then: H2Then,
    ) {
        let Ok(mut writer) = respond.send_response(head(&answer), false) else {
            return;
        };
        loop {
            tokio::select! {
                bytes = fed.recv() => match bytes {
                    Some(bytes) => { let _ = writer.send_data(bytes.into(), false); }
                    None => break,
                },
                _ = std::future::poll_fn(|c| writer.poll_reset(c)) => {
                    self.shared.note(|counts| counts.seen[self.index].reset = true);
                    return;
                }
            }
        }
        if then == H2Then::Reset {
            writer.send_reset(Reason::INTERNAL_ERROR);
            return;
        }
        let _ = match answer.trailers {
            Some(trailers) => writer.send_trailers(fields(&trailers)),
            None => writer.send_data(Bytes::new(), true),
        };
    }
}
