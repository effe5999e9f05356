//! Push configurations: kept and shown to whoever asks, but nothing is ever delivered.

use crate::a2a::Version;
use serde_json::{Value, json};

/// A configuration of a task.
struct Kept {
    task: String,
    id: String,
    /// Its members in the shape of the version that it was set in.
    config: Value,
}

/// All configurations of the agent, in the order in which they were set.
#[derive(Default)]
pub(super) struct Configs {
    kept: Vec<Kept>,
    made: u64,
}

impl Configs {
    /// Sets a configuration; one of the same id is replaced.
    pub(super) fn set(&mut self, version: Version, task: &str, config: &Value) -> Value {
        self.made += 1;
        let id = match config.get("id").and_then(Value::as_str) {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => format!("config-{}", self.made),
        };
        let mut config = config.clone();
        config["id"] = id.clone().into();
        self.remove(task, &id);
        let kept = Kept {
            task: task.to_owned(),
            id,
            config,
        };
        let shown = kept.shown(version);
        self.kept.push(kept);
        shown
    }

    /// One configuration of a task; the first where none is named (0.3).
    pub(super) fn get(&self, version: Version, task: &str, id: Option<&str>) -> Option<Value> {
        self.kept
            .iter()
            .find(|kept| kept.task == task && id.is_none_or(|id| kept.id == id))
            .map(|kept| kept.shown(version))
    }

    /// All configurations of a task.
    pub(super) fn list(&self, version: Version, task: &str) -> Value {
        let of_task = self.kept.iter().filter(|kept| kept.task == task);
        let configs: Vec<Value> = of_task.map(|kept| kept.shown(version)).collect();
        match version {
            Version::V1_0 => json!({"configs": configs, "nextPageToken": ""}),
            Version::V0_3 => Value::Array(configs),
        }
    }

    /// Forgets a configuration.
    pub(super) fn remove(&mut self, task: &str, id: &str) {
        self.kept.retain(|kept| kept.task != task || kept.id != id);
    }
}

impl Kept {
    fn shown(&self, version: Version) -> Value {
        match version {
            Version::V1_0 => {
                let mut config = self.config.clone();
                config["taskId"] = self.task.clone().into();
                config
            }
            Version::V0_3 => json!({
                "taskId": self.task,
                "pushNotificationConfig": self.config,
            }),
        }
    }
}
