//! Member names of protocol objects, and how names fold.
//!
//! Each table holds the names that any dialect uses for that object, so that one that belongs
//! elsewhere is refused, in any spelling.

use crate::a2a::operation::{Binding, Dialect, Version};

/// A protocol object has at most this many unknown members.
const MAX_UNKNOWN: usize = 1024;

/// The names of one protocol object.
#[derive(Debug)]
pub(in crate::a2a) struct Names {
    /// The code when something other than an object stands there.
    pub(in crate::a2a) wrong_type: &'static str,
    known: &'static [&'static str],
    /// Refused in 0.3: names that only 1.0, or only another binding, uses here.
    foreign_to_0_3: &'static [&'static str],
    /// Refused in 1.0.
    foreign_to_1_0: &'static [&'static str],
    /// Refused in the REST binding of 0.3, which has names of its own.
    foreign_to_rest_0_3: &'static [&'static str],
    /// Names of the 0.3 proto beside their JSON names: its REST binding is ProtoJSON, whose writers
    /// may use either.
    original: &'static [(&'static str, &'static str)],
}

/// Nothing known.
const NONE: Names = Names {
    wrong_type: "params_type",
    known: &[],
    foreign_to_0_3: &[],
    foreign_to_1_0: &[],
    foreign_to_rest_0_3: &[],
    original: &[],
};

impl Names {
    /// The known name that `key` exactly is.
    pub(in crate::a2a) fn known(&self, key: &str) -> Option<&'static str> {
        self.known.iter().find(|name| **name == key).copied()
    }

    /// The JSON name for which `key` is the proto's own, where a dialect knows such names.
    pub(super) fn original(&self, key: &str, dialect: Dialect) -> Option<&'static str> {
        if !is_proto_json(dialect) {
            return None;
        }
        let pair = self.original.iter().find(|(original, _)| *original == key);
        pair.map(|(_, name)| *name)
    }

    /// One bit for a known name.
    pub(super) fn bit(&self, name: &str) -> u32 {
        let index = self.known.iter().position(|known| *known == name);
        index.map_or(0, |index| 1 << (index & 31))
    }

    /// Whether `name` belongs to another dialect.
    pub(in crate::a2a) fn is_foreign(&self, name: &str, dialect: Dialect) -> bool {
        let foreign = match dialect.version {
            Version::V1_0 => self.foreign_to_1_0,
            Version::V0_3 if is_proto_json(dialect) => self.foreign_to_rest_0_3,
            Version::V0_3 => self.foreign_to_0_3,
        };
        foreign.contains(&name)
    }
}

/// Whether a dialect is the ProtoJSON of 0.3.
pub(super) fn is_proto_json(dialect: Dialect) -> bool {
    match (dialect.binding, dialect.version) {
        (Binding::Rest, Version::V0_3) => true,
        (Binding::Rest, Version::V1_0) | (Binding::JsonRpc | Binding::Grpc, _) => false,
    }
}

/// The JSON-RPC request object.
pub(in crate::a2a) const ENVELOPE: Names = Names {
    wrong_type: "not_an_object",
    known: &["jsonrpc", "id", "method", "params"],
    ..NONE
};

/// Parameters of both send operations. `request` is the field's name in the 0.3 proto.
pub(super) const SEND: Names = Names {
    known: &["message", "configuration", "metadata", "tenant", "request"],
    foreign_to_0_3: &["request"],
    foreign_to_1_0: &["request"],
    original: &[("request", "message")],
    ..NONE
};

/// A send's configuration. `pushNotification` is 0.3's name in REST.
pub(super) const CONFIGURATION: Names = Names {
    wrong_type: "configuration_type",
    known: &[
        "acceptedOutputModes",
        "historyLength",
        "taskPushNotificationConfig",
        "returnImmediately",
        "pushNotificationConfig",
        "pushNotification",
        "blocking",
        // No version has it; some agents read it (`a2a-protocol.md` g).
        "skillId",
    ],
    foreign_to_0_3: &[
        "taskPushNotificationConfig",
        "returnImmediately",
        "pushNotification",
    ],
    foreign_to_1_0: &["pushNotificationConfig", "pushNotification", "blocking"],
    foreign_to_rest_0_3: &[
        "taskPushNotificationConfig",
        "returnImmediately",
        "pushNotificationConfig",
    ],
    original: &[
        ("accepted_output_modes", "acceptedOutputModes"),
        ("history_length", "historyLength"),
        ("push_notification", "pushNotification"),
    ],
};

/// A message. `content` is what 0.3's REST calls `parts`.
pub(super) const MESSAGE: Names = Names {
    wrong_type: "message_type",
    known: &[
        "messageId",
        "contextId",
        "taskId",
        "role",
        "parts",
        "metadata",
        "extensions",
        "referenceTaskIds",
        "kind",
        "content",
    ],
    foreign_to_0_3: &["content"],
    foreign_to_1_0: &["content"],
    foreign_to_rest_0_3: &["parts", "referenceTaskIds"],
    original: &[
        ("message_id", "messageId"),
        ("context_id", "contextId"),
        ("task_id", "taskId"),
    ],
};

/// A part. `kind` passes in 1.0: it decides nothing there, and hybrid clients send it.
pub(super) const PART: Names = Names {
    wrong_type: "part_type",
    known: &[
        "text",
        "raw",
        "url",
        "data",
        "metadata",
        "filename",
        "mediaType",
        "kind",
        "file",
    ],
    foreign_to_0_3: &["raw", "url"],
    foreign_to_1_0: &["file"],
    foreign_to_rest_0_3: &["raw", "url"],
    ..NONE
};

/// The data of a part in 0.3's REST.
pub(super) const DATA: Names = Names {
    wrong_type: "part_member_type",
    known: &["data"],
    ..NONE
};

/// The file of a 0.3 part; the last two are REST's names.
pub(super) const FILE: Names = Names {
    wrong_type: "file_type",
    known: &[
        "bytes",
        "uri",
        "name",
        "mimeType",
        "fileWithUri",
        "fileWithBytes",
    ],
    foreign_to_0_3: &["fileWithUri", "fileWithBytes"],
    foreign_to_rest_0_3: &["bytes", "uri"],
    original: &[
        ("file_with_uri", "fileWithUri"),
        ("file_with_bytes", "fileWithBytes"),
        ("mime_type", "mimeType"),
    ],
    ..NONE
};

/// A push configuration within a send or within 0.3's Create.
pub(super) const PUSH_CONFIG: Names = Names {
    wrong_type: "push_config_type",
    known: &["tenant", "id", "taskId", "url", "token", "authentication"],
    foreign_to_0_3: &["taskId"],
    foreign_to_rest_0_3: &["taskId"],
    ..NONE
};

/// How an agent authenticates to a webhook.
pub(super) const AUTHENTICATION: Names = Names {
    wrong_type: "authentication_type",
    known: &["scheme", "schemes", "credentials"],
    foreign_to_0_3: &["scheme"],
    foreign_to_1_0: &["schemes"],
    foreign_to_rest_0_3: &["scheme"],
    ..NONE
};

/// Parameters of GetTask, CancelTask, SubscribeToTask.
pub(super) const TASK: Names = Names {
    known: &["id", "historyLength", "metadata", "tenant"],
    ..NONE
};

/// Parameters of ListTasks, which 0.3 does not have.
pub(super) const LIST: Names = Names {
    known: &[
        "contextId",
        "status",
        "pageSize",
        "pageToken",
        "historyLength",
        "statusTimestampAfter",
        "includeArtifacts",
        "tenant",
    ],
    ..NONE
};

/// Parameters of CreateTaskPushNotificationConfig: flat in 1.0, nested in 0.3; `config`,
/// `configId`, `parent` and `name` are REST 0.3's.
pub(super) const CREATE_PUSH: Names = Names {
    known: &[
        "taskId",
        "id",
        "url",
        "token",
        "authentication",
        "tenant",
        "pushNotificationConfig",
        "config",
        "configId",
        "parent",
        "name",
    ],
    foreign_to_0_3: &[
        "id",
        "url",
        "token",
        "authentication",
        "config",
        "configId",
        "parent",
        "name",
    ],
    foreign_to_1_0: &[
        "pushNotificationConfig",
        "config",
        "configId",
        "parent",
        "name",
    ],
    foreign_to_rest_0_3: &["taskId", "id", "url", "token", "authentication"],
    original: &[
        ("config_id", "configId"),
        ("push_notification_config", "pushNotificationConfig"),
    ],
    ..NONE
};

/// Parameters of GetTaskPushNotificationConfig and DeleteTaskPushNotificationConfig. `id` is the
/// configuration in 1.0 and the task in 0.3.
pub(super) const PUSH: Names = Names {
    known: &[
        "taskId",
        "id",
        "tenant",
        "pushNotificationConfigId",
        "metadata",
    ],
    foreign_to_0_3: &["taskId"],
    foreign_to_1_0: &["pushNotificationConfigId"],
    ..NONE
};

/// Parameters of ListTaskPushNotificationConfigs.
pub(super) const LIST_PUSH: Names = Names {
    known: &[
        "taskId",
        "id",
        "pageSize",
        "pageToken",
        "tenant",
        "metadata",
    ],
    foreign_to_0_3: &["taskId"],
    foreign_to_1_0: &["id"],
    ..NONE
};

/// The `config` of 0.3's Create in REST. The names of a flat configuration do not belong here.
pub(super) const TASK_PUSH_CONFIG: Names = Names {
    wrong_type: "push_config_type",
    known: &[
        "name",
        "pushNotificationConfig",
        "id",
        "taskId",
        "url",
        "token",
        "authentication",
    ],
    foreign_to_rest_0_3: &["id", "taskId", "url", "token", "authentication"],
    original: &[("push_notification_config", "pushNotificationConfig")],
    ..NONE
};

/// The body of CancelTask and SubscribeToTask in REST, whose path has the id: 1.0 may repeat it,
/// 0.3 as `name`.
pub(super) const REST_TASK: Names = Names {
    known: &["id", "historyLength", "metadata", "tenant", "name"],
    foreign_to_1_0: &["name"],
    foreign_to_rest_0_3: &["id", "historyLength"],
    ..NONE
};

/// Parameters of GetExtendedAgentCard.
pub(super) const CARD: Names = Names {
    known: &["tenant"],
    ..NONE
};

/// The unknown members of one object, to see that no two fold alike.
#[derive(Debug, Default)]
pub(in crate::a2a) struct Unknown {
    folded: Vec<Box<str>>,
}

impl Unknown {
    /// Takes one more; the error is a code.
    pub(in crate::a2a) fn add(&mut self, key: &str, names: &Names) -> Result<(), &'static str> {
        if names.known.iter().any(|name| fold_alike(name, key)) {
            return Err("inexact_key");
        }
        if self.folded.len() == MAX_UNKNOWN {
            return Err("too_many_members");
        }
        self.folded.push(folded(key).collect::<String>().into());
        Ok(())
    }

    /// Judges them all; the error is a code.
    pub(in crate::a2a) fn finish(mut self) -> Result<(), &'static str> {
        self.folded.sort_unstable();
        match self.folded.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err("keys_fold_alike"),
            false => Ok(()),
        }
    }
}

/// Whether some parser could take one name for the other.
pub(in crate::a2a) fn fold_alike(a: &str, b: &str) -> bool {
    folded(a).eq(folded(b))
}

/// Simple case folding by way of the upper case, without `_`. That brings ſ to s and K to k, and
/// also ı to i, which only parsers that compare in upper case do.
fn folded(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(|c| *c != '_').map(|c| {
        if c.is_ascii() {
            return c.to_ascii_lowercase();
        }
        let upper = alone(c.to_uppercase()).unwrap_or(c);
        alone(upper.to_lowercase()).unwrap_or(upper)
    })
}

/// The character of a case mapping that yields only one.
fn alone(mut mapping: impl Iterator<Item = char>) -> Option<char> {
    let first = mapping.next()?;
    mapping.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_as_the_laxest_parser_does() {
        for alias in [
            "task_id",
            "TaskId",
            "TASKID",
            "taskid",
            "ta\u{17f}kId",
            "tas\u{212a}Id",
            "_taskId",
            "t_a_s_k_i_d",
        ] {
            assert!(fold_alike("taskId", alias), "{alias}");
        }
        for other in ["taskIds", "task-id", "task id", "askId", "täskId", ""] {
            assert!(!fold_alike("taskId", other), "{other}");
        }
        assert!(fold_alike("ΣÉ", "ςé"));
    }

    #[test]
    fn known_names_are_distinct_when_folded() {
        for names in [
            ENVELOPE,
            SEND,
            CONFIGURATION,
            MESSAGE,
            PART,
            DATA,
            FILE,
            PUSH_CONFIG,
            AUTHENTICATION,
            TASK,
            LIST,
            CREATE_PUSH,
            TASK_PUSH_CONFIG,
            REST_TASK,
            PUSH,
            LIST_PUSH,
            CARD,
        ] {
            for (index, a) in names.known.iter().enumerate() {
                assert!(
                    !names.known[..index].iter().any(|b| fold_alike(a, b)),
                    "{a}"
                );
            }
            let foreign = [
                names.foreign_to_0_3,
                names.foreign_to_1_0,
                names.foreign_to_rest_0_3,
            ];
            for name in foreign.into_iter().flatten() {
                assert!(names.known.contains(name), "{name}");
            }
            // A proto's name must be taken for the JSON name, or it would be refused as inexact.
            for (original, name) in names.original {
                assert!(names.known.contains(name), "{name}");
                assert!(!names.foreign_to_rest_0_3.contains(name), "{name}");
                assert!(fold_alike(original, name) || *original == "request");
            }
            assert!(names.known.len() <= 32, "one bit each");
        }
    }
}
