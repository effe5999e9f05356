//! Member names of protocol objects, and how names fold.
//!
//! Each table holds both versions' names for that object, so that a name of either is refused in
//! any other spelling.

use crate::a2a::operation::Version;

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
}

impl Names {
    /// The known name that `key` exactly is.
    pub(in crate::a2a) fn known(&self, key: &str) -> Option<&'static str> {
        self.known.iter().find(|name| **name == key).copied()
    }

    /// Whether `name` belongs to the other version.
    pub(in crate::a2a) fn is_foreign(&self, name: &str, version: Version) -> bool {
        match version {
            Version::V0_3 => self.foreign_to_0_3.contains(&name),
            Version::V1_0 => self.foreign_to_1_0.contains(&name),
        }
    }
}

/// The JSON-RPC request object.
pub(in crate::a2a) const ENVELOPE: Names = Names {
    wrong_type: "not_an_object",
    known: &["jsonrpc", "id", "method", "params"],
    foreign_to_0_3: &[],
    foreign_to_1_0: &[],
};

/// Parameters of both send operations. `request` is the field's name in the 0.3 proto.
pub(super) const SEND: Names = Names {
    wrong_type: "params_type",
    known: &["message", "configuration", "metadata", "tenant", "request"],
    foreign_to_0_3: &["request"],
    foreign_to_1_0: &["request"],
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
    foreign_to_1_0: &[],
};

/// A push configuration within a send or within 0.3's Create.
pub(super) const PUSH_CONFIG: Names = Names {
    wrong_type: "push_config_type",
    known: &["tenant", "id", "taskId", "url", "token", "authentication"],
    foreign_to_0_3: &["taskId"],
    foreign_to_1_0: &[],
};

/// How an agent authenticates to a webhook.
pub(super) const AUTHENTICATION: Names = Names {
    wrong_type: "authentication_type",
    known: &["scheme", "schemes", "credentials"],
    foreign_to_0_3: &["scheme"],
    foreign_to_1_0: &["schemes"],
};

/// Parameters of GetTask, CancelTask, SubscribeToTask.
pub(super) const TASK: Names = Names {
    wrong_type: "params_type",
    known: &["id", "historyLength", "metadata", "tenant"],
    foreign_to_0_3: &[],
    foreign_to_1_0: &[],
};

/// Parameters of ListTasks, which 0.3 does not have.
pub(super) const LIST: Names = Names {
    wrong_type: "params_type",
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
    foreign_to_0_3: &[],
    foreign_to_1_0: &[],
};

/// Parameters of CreateTaskPushNotificationConfig: flat in 1.0, nested in 0.3; `config`,
/// `configId` and `parent` are REST 0.3's.
pub(super) const CREATE_PUSH: Names = Names {
    wrong_type: "params_type",
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
    ],
    foreign_to_0_3: &[
        "id",
        "url",
        "token",
        "authentication",
        "config",
        "configId",
        "parent",
    ],
    foreign_to_1_0: &["pushNotificationConfig", "config", "configId", "parent"],
};

/// Parameters of GetTaskPushNotificationConfig and DeleteTaskPushNotificationConfig. `id` is the
/// configuration in 1.0 and the task in 0.3.
pub(super) const PUSH: Names = Names {
    wrong_type: "params_type",
    known: &[
        "taskId",
        "id",
        "tenant",
        "pushNotificationConfigId",
        "metadata",
    ],
    foreign_to_0_3: &["taskId"],
    foreign_to_1_0: &["pushNotificationConfigId"],
};

/// Parameters of ListTaskPushNotificationConfigs.
pub(super) const LIST_PUSH: Names = Names {
    wrong_type: "params_type",
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
};

/// Parameters of GetExtendedAgentCard.
pub(super) const CARD: Names = Names {
    wrong_type: "params_type",
    known: &["tenant"],
    foreign_to_0_3: &[],
    foreign_to_1_0: &[],
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
            FILE,
            PUSH_CONFIG,
            AUTHENTICATION,
            TASK,
            LIST,
            CREATE_PUSH,
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
            for name in names.foreign_to_0_3.iter().chain(names.foreign_to_1_0) {
                assert!(names.known.contains(name), "{name}");
            }
        }
    }
}
