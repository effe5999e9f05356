//! `lf.a2a.v1`.

use super::{STRUCT, TIMESTAMP, VALUE};
use crate::a2a::strict_proto::Kind::{Bytes, Message as Nested, Text, Varint};
use crate::a2a::strict_proto::Message;
use crate::a2a::strict_proto::table::{closed, many, once, one_of, open};

/// Request of both sends.
pub static SEND_MESSAGE_REQUEST: Message = closed(
    "SendMessageRequest",
    &[
        once(1, "tenant", Text),
        once(2, "message", Nested(&MESSAGE)),
        once(3, "configuration", Nested(&SEND_MESSAGE_CONFIGURATION)),
        once(4, "metadata", Nested(&STRUCT)),
    ],
);

/// How a send is to be answered.
pub static SEND_MESSAGE_CONFIGURATION: Message = closed(
    "SendMessageConfiguration",
    &[
        many(1, "accepted_output_modes", Text),
        once(
            2,
            "task_push_notification_config",
            Nested(&TASK_PUSH_NOTIFICATION_CONFIG),
        ),
        once(3, "history_length", Varint),
        once(4, "return_immediately", Varint),
    ],
);

/// Request and reply of Create, and the inline configuration of a send.
pub static TASK_PUSH_NOTIFICATION_CONFIG: Message = closed(
    "TaskPushNotificationConfig",
    &[
        once(1, "tenant", Text),
        once(2, "id", Text),
        once(3, "task_id", Text),
        once(4, "url", Text),
        once(5, "token", Text),
        once(6, "authentication", Nested(&AUTHENTICATION_INFO)),
    ],
);

/// How an agent authenticates to a webhook.
pub static AUTHENTICATION_INFO: Message = closed(
    "AuthenticationInfo",
    &[once(1, "scheme", Text), once(2, "credentials", Text)],
);

/// A message.
pub static MESSAGE: Message = closed(
    "Message",
    &[
        once(1, "message_id", Text),
        once(2, "context_id", Text),
        once(3, "task_id", Text),
        once(4, "role", Varint),
        many(5, "parts", Nested(&PART)),
        once(6, "metadata", Nested(&STRUCT)),
        many(7, "extensions", Text),
        many(8, "reference_task_ids", Text),
    ],
);

/// A part of a message or an artifact.
pub static PART: Message = open(
    "Part",
    &[
        one_of(1, "text", Text),
        one_of(2, "raw", Bytes),
        one_of(3, "url", Text),
        one_of(4, "data", Nested(&VALUE)),
        once(5, "metadata", Nested(&STRUCT)),
        once(6, "filename", Text),
        once(7, "media_type", Text),
    ],
);

/// Request of GetTask.
pub static GET_TASK_REQUEST: Message = closed(
    "GetTaskRequest",
    &[
        once(1, "tenant", Text),
        once(2, "id", Text),
        once(3, "history_length", Varint),
    ],
);

/// Request of ListTasks.
pub static LIST_TASKS_REQUEST: Message = closed(
    "ListTasksRequest",
    &[
        once(1, "tenant", Text),
        once(2, "context_id", Text),
        once(3, "status", Varint),
        once(4, "page_size", Varint),
        once(5, "page_token", Text),
        once(6, "history_length", Varint),
        once(7, "status_timestamp_after", Nested(&TIMESTAMP)),
        once(8, "include_artifacts", Varint),
    ],
);

/// Request of CancelTask.
pub static CANCEL_TASK_REQUEST: Message = closed(
    "CancelTaskRequest",
    &[
        once(1, "tenant", Text),
        once(2, "id", Text),
        once(3, "metadata", Nested(&STRUCT)),
    ],
);

/// Request of SubscribeToTask.
pub static SUBSCRIBE_TO_TASK_REQUEST: Message = closed(
    "SubscribeToTaskRequest",
    &[once(1, "tenant", Text), once(2, "id", Text)],
);

/// Request of GetTaskPushNotificationConfig.
pub static GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "GetTaskPushNotificationConfigRequest",
    &[
        once(1, "tenant", Text),
        once(2, "task_id", Text),
        once(3, "id", Text),
    ],
);

/// Request of DeleteTaskPushNotificationConfig.
pub static DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "DeleteTaskPushNotificationConfigRequest",
    &[
        once(1, "tenant", Text),
        once(2, "task_id", Text),
        once(3, "id", Text),
    ],
);

/// Request of ListTaskPushNotificationConfigs; its tenant stands last.
pub static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST: Message = closed(
    "ListTaskPushNotificationConfigsRequest",
    &[
        once(1, "task_id", Text),
        once(2, "page_size", Varint),
        once(3, "page_token", Text),
        once(4, "tenant", Text),
    ],
);

/// Request of GetExtendedAgentCard.
pub static GET_EXTENDED_AGENT_CARD_REQUEST: Message =
    closed("GetExtendedAgentCardRequest", &[once(1, "tenant", Text)]);

/// Reply of SendMessage.
pub static SEND_MESSAGE_RESPONSE: Message = open(
    "SendMessageResponse",
    &[
        one_of(1, "task", Nested(&TASK)),
        one_of(2, "message", Nested(&MESSAGE)),
    ],
);

/// One event of a stream.
pub static STREAM_RESPONSE: Message = open(
    "StreamResponse",
    &[
        one_of(1, "task", Nested(&TASK)),
        one_of(2, "message", Nested(&MESSAGE)),
        one_of(3, "status_update", Nested(&TASK_STATUS_UPDATE_EVENT)),
        one_of(4, "artifact_update", Nested(&TASK_ARTIFACT_UPDATE_EVENT)),
    ],
);

/// A task.
pub static TASK: Message = open(
    "Task",
    &[
        once(1, "id", Text),
        once(2, "context_id", Text),
        once(3, "status", Nested(&TASK_STATUS)),
        many(4, "artifacts", Nested(&ARTIFACT)),
        many(5, "history", Nested(&MESSAGE)),
        once(6, "metadata", Nested(&STRUCT)),
    ],
);

/// The state of a task.
pub static TASK_STATUS: Message = open(
    "TaskStatus",
    &[
        once(1, "state", Varint),
        once(2, "message", Nested(&MESSAGE)),
        once(3, "timestamp", Nested(&TIMESTAMP)),
    ],
);

/// An artifact.
pub static ARTIFACT: Message = open(
    "Artifact",
    &[
        once(1, "artifact_id", Text),
        once(2, "name", Text),
        once(3, "description", Text),
        many(4, "parts", Nested(&PART)),
        once(5, "metadata", Nested(&STRUCT)),
        many(6, "extensions", Text),
    ],
);

/// A change of state.
pub static TASK_STATUS_UPDATE_EVENT: Message = open(
    "TaskStatusUpdateEvent",
    &[
        once(1, "task_id", Text),
        once(2, "context_id", Text),
        once(3, "status", Nested(&TASK_STATUS)),
        once(4, "metadata", Nested(&STRUCT)),
    ],
);

/// An artifact, or more of one.
pub static TASK_ARTIFACT_UPDATE_EVENT: Message = open(
    "TaskArtifactUpdateEvent",
    &[
        once(1, "task_id", Text),
        once(2, "context_id", Text),
        once(3, "artifact", Nested(&ARTIFACT)),
        once(4, "append", Varint),
        once(5, "last_chunk", Varint),
        once(6, "metadata", Nested(&STRUCT)),
    ],
);

/// Reply of ListTasks.
pub static LIST_TASKS_RESPONSE: Message = open(
    "ListTasksResponse",
    &[
        many(1, "tasks", Nested(&TASK)),
        once(2, "next_page_token", Text),
        once(3, "page_size", Varint),
        once(4, "total_size", Varint),
    ],
);

/// Reply of ListTaskPushNotificationConfigs.
pub static LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE: Message = open(
    "ListTaskPushNotificationConfigsResponse",
    &[
        many(1, "configs", Nested(&TASK_PUSH_NOTIFICATION_CONFIG)),
        once(2, "next_page_token", Text),
    ],
);
