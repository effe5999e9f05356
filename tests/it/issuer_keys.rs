//! Issuers' keys over the network, from the connection to the call that is let through.

mod explained;
mod fetching;
mod lifecycle;
mod outages;
mod stand;
