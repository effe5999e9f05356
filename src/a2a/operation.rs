//! The closed sets of the protocol: bindings, versions, operations.
//!
//! A2A 1.0 sections 3.1, 3.6 and 5.3; names of 0.3 are in [`super::wire`].

use std::fmt;

/// A protocol binding (A2A 1.0 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// HTTP+JSON.
    Rest,
    /// gRPC.
    Grpc,
}

impl Binding {
    /// The name an Agent Card uses (`protocolBinding`, `transport`).
    pub fn card_name(self) -> &'static str {
        match self {
            Binding::JsonRpc => "JSONRPC",
            Binding::Rest => "HTTP+JSON",
            Binding::Grpc => "GRPC",
        }
    }

    /// Whether its interfaces have a path; gRPC's path is that of the method alone.
    pub fn has_path(self) -> bool {
        match self {
            Binding::JsonRpc | Binding::Rest => true,
            Binding::Grpc => false,
        }
    }

    /// Whether it is spoken over HTTP/2 only.
    pub fn needs_http2(self) -> bool {
        match self {
            Binding::JsonRpc | Binding::Rest => false,
            Binding::Grpc => true,
        }
    }

    /// The name in records and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Binding::JsonRpc => "jsonrpc",
            Binding::Rest => "rest",
            Binding::Grpc => "grpc",
        }
    }
}

/// A protocol version; patch numbers never matter on the wire (A2A 1.0 section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 0.3.
    V0_3,
    /// 1.0.
    V1_0,
}

impl Version {
    /// `Major.Minor`, as the `A2A-Version` header spells it.
    pub fn label(self) -> &'static str {
        match self {
            Version::V0_3 => "0.3",
            Version::V1_0 => "1.0",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A set of versions, such as those that an interface offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Versions {
    /// Offers 0.3.
    pub v0_3: bool,
    /// Offers 1.0.
    pub v1_0: bool,
}

impl Versions {
    /// Whether the set has `version`.
    pub fn contains(self, version: Version) -> bool {
        match version {
            Version::V0_3 => self.v0_3,
            Version::V1_0 => self.v1_0,
        }
    }

    /// Whether the two sets share a version.
    pub fn meets(self, other: Versions) -> bool {
        (self.v0_3 && other.v0_3) || (self.v1_0 && other.v1_0)
    }

    /// Adds `version`.
    pub fn insert(&mut self, version: Version) {
        match version {
            Version::V0_3 => self.v0_3 = true,
            Version::V1_0 => self.v1_0 = true,
        }
    }
}

/// One binding with one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The envelope.
    pub binding: Binding,
    /// The spelling.
    pub version: Version,
}

impl Dialect {
    /// That of a gRPC answer to a request of which nothing is known but that it is gRPC's.
    pub const GRPC: Dialect = Dialect {
        binding: Binding::Grpc,
        version: Version::V1_0,
    };
}

/// The eleven abstract operations (A2A 1.0 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// 1: creates or continues a task, unary.
    SendMessage,
    /// 2: the same, streaming.
    SendStreamingMessage,
    /// 3: reads one task.
    GetTask,
    /// 4: reads many tasks; 1.0 only.
    ListTasks,
    /// 5: cancels a task.
    CancelTask,
    /// 6: follows a task, streaming.
    SubscribeToTask,
    /// 7: attaches a webhook.
    CreateTaskPushNotificationConfig,
    /// 8: reads one webhook configuration.
    GetTaskPushNotificationConfig,
    /// 9: reads all webhook configurations of a task.
    ListTaskPushNotificationConfigs,
    /// 10: removes a webhook configuration.
    DeleteTaskPushNotificationConfig,
    /// 11: the authenticated extended card.
    GetExtendedAgentCard,
}

/// Operation groups that policies may name (`design.md` section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationGroup {
    /// SendMessage, SendStreamingMessage.
    Messages,
    /// GetTask, SubscribeToTask, CancelTask.
    Tasks,
    /// ListTasks.
    List,
    /// The four push configuration operations.
    Push,
    /// GetExtendedAgentCard.
    Card,
}

impl Operation {
    /// All eleven, in the order of the specification.
    pub const ALL: [Operation; 11] = [
        Operation::SendMessage,
        Operation::SendStreamingMessage,
        Operation::GetTask,
        Operation::ListTasks,
        Operation::CancelTask,
        Operation::SubscribeToTask,
        Operation::CreateTaskPushNotificationConfig,
        Operation::GetTaskPushNotificationConfig,
        Operation::ListTaskPushNotificationConfigs,
        Operation::DeleteTaskPushNotificationConfig,
        Operation::GetExtendedAgentCard,
    ];

    /// The 1.0 name: in policies, records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Operation::SendMessage => "SendMessage",
            Operation::SendStreamingMessage => "SendStreamingMessage",
            Operation::GetTask => "GetTask",
            Operation::ListTasks => "ListTasks",
            Operation::CancelTask => "CancelTask",
            Operation::SubscribeToTask => "SubscribeToTask",
            Operation::CreateTaskPushNotificationConfig => "CreateTaskPushNotificationConfig",
            Operation::GetTaskPushNotificationConfig => "GetTaskPushNotificationConfig",
            Operation::ListTaskPushNotificationConfigs => "ListTaskPushNotificationConfigs",
            Operation::DeleteTaskPushNotificationConfig => "DeleteTaskPushNotificationConfig",
            Operation::GetExtendedAgentCard => "GetExtendedAgentCard",
        }
    }

    /// The group it belongs to.
    pub fn group(self) -> OperationGroup {
        match self {
            Operation::SendMessage | Operation::SendStreamingMessage => OperationGroup::Messages,
            Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
                OperationGroup::Tasks
            }
            Operation::ListTasks => OperationGroup::List,
            Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig => OperationGroup::Push,
            Operation::GetExtendedAgentCard => OperationGroup::Card,
        }
    }

    /// Whether it is about a task that has to be named.
    pub fn names_a_task(self) -> bool {
        match self {
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::ListTasks
            | Operation::GetExtendedAgentCard => false,
            Operation::GetTask
            | Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig => true,
        }
    }

    /// Whether it changes nothing at the agent and is answered once, so that doing it twice does no
    /// more than doing it once.
    pub fn is_read(self) -> bool {
        match self {
            Operation::GetTask
            | Operation::ListTasks
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::GetExtendedAgentCard => true,
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::CancelTask
            | Operation::SubscribeToTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::DeleteTaskPushNotificationConfig => false,
        }
    }

    /// Whether a good reply is a stream of events.
    pub fn is_streaming(self) -> bool {
        match self {
            Operation::SendStreamingMessage | Operation::SubscribeToTask => true,
            Operation::SendMessage
            | Operation::GetTask
            | Operation::ListTasks
            | Operation::CancelTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig
            | Operation::GetExtendedAgentCard => false,
        }
    }
}
