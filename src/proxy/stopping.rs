//! The order to stop, and how many requests are still under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};

/// Shared by all listeners of a process.
#[derive(Clone)]
pub struct Stopping {
    order: Arc<watch::Sender<Order>>,
    under_way: Arc<UnderWay>,
}

/// Requests under way. A counter and not a watch: every request touches it twice, and hardly ever
/// does anybody look.
#[derive(Default)]
pub struct UnderWay {
    count: AtomicUsize,
    none: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Order {
    GoOn,
    /// No new requests; those under way are finished.
    Stop,
    /// Those under way are cut off.
    Cut,
}

/// One request under way.
pub struct Ticket(Arc<UnderWay>);

impl Stopping {
    /// Nobody has ordered anything yet.
    pub fn new() -> Stopping {
        Stopping {
            order: Arc::new(watch::Sender::new(Order::GoOn)),
            under_way: Arc::default(),
        }
    }

    /// Orders to take no new requests.
    pub fn stop(&self) {
        self.order.send_if_modified(|order| {
            let first = *order == Order::GoOn;
            if first {
                *order = Order::Stop;
            }
            first
        });
    }

    /// Orders to cut off what is still under way.
    pub fn cut_now(&self) {
        self.order.send_replace(Order::Cut);
    }

    /// Whether the order to stop was given.
    pub fn ordered(&self) -> bool {
        *self.order.borrow() >= Order::Stop
    }

    /// Resolves when the order to stop is given.
    pub async fn wait(&self) {
        self.reached(Order::Stop).await;
    }

    /// Resolves when what is under way is to be cut off.
    pub async fn cut(&self) {
        self.reached(Order::Cut).await;
    }

    async fn reached(&self, order: Order) {
        let mut watch = self.order.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = watch.wait_for(|now| *now >= order).await;
    }

    /// A request begins.
    pub fn enter(&self) -> Ticket {
        self.under_way.enter()
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.count()
    }

    /// Resolves when no request is under way.
    pub async fn drained(&self) {
        self.under_way.drained().await;
    }
}

impl UnderWay {
    /// A request begins.
    pub fn enter(self: &Arc<UnderWay>) -> Ticket {
        self.count.fetch_add(1, Ordering::AcqRel);
        Ticket(self.clone())
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Resolves when no request is under way.
    pub async fn drained(&self) {
        loop {
            let none = self.none.notified();
            // Made before the count is read, so the last request cannot end unnoticed between.
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Default for Stopping {
    fn default() -> Stopping {
        Stopping::new()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn drains_when_the_last_request_ends() {
        let stopping = Stopping::new();
        let ticket = stopping.enter();
        stopping.stop();
        stopping.wait().await;
        assert!(stopping.ordered());
        assert_eq!(stopping.under_way(), 1);
        drop(ticket);
        stopping.drained().await;
        stopping.cut_now();
        stopping.cut().await;
    }
}
