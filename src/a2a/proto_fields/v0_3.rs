//! `a2a.v1`, which is A2A 0.3.

use super::{STRUCT, TIMESTAMP};
use crate::a2a::strict_proto::Kind::{Bytes, Message as Nested, Text, Varint};
use crate::a2a::strict_proto::Message;
use crate::a2a::strict_proto::table::{closed, many, once, one_of, open};

/// Request of both sends. Its message is called `request`.
pub static SEND_MESSAGE_REQUEST: Message = closed(
    "SendMessageRequest",
    &[
        once(1, "request", Nested(&MESSAGE)),
        once(2, "configuration", Nested(&SEND_MESSAGE_CONFIGURATION)),
        once(3, "metadata", Nested(&STRUCT)),
    ],
);

/// How a send is to be answered.
pub static SEND_MESSAGE_CONFIGURATION: Message = closed(
    "SendMessageConfiguration",
    &[
        many(1, "accepted_output_modes", Text),
        once(2, "push_notification", Nested(&PUSH_NOTIFICATION_CONFIG)),
        once(3, "history_length", Varint),
        once(4, "blocking", Varint),
    ],
);

/// A webhook.
pub static PUSH_NOTIFICATION_CONFIG: Message = closed(
    "PushNotificationConfig",
    &[
        once(1, "id", Text),
        once(2, "url", Text),
        once(3, "token", Text),
        once(4, "authentication", Nested(&AUTHENTICATION_INFO)),
    ],
);

/// How an agent authenticates to a webhook.
pub static AUTHENTICATION_INFO: Message = closed(
    "AuthenticationInfo",
    &[many(1, "schemes", Text), once(2, "credentials", Text)],
);

/// A message.
pub static MESSAGE: Message = closed(
    "Message",
    &[
        once(1, "message_id", Text),
        once(2, "context_id", Text),
        once(3, "task_id", Text),
        once(4, "role", Varint),
        many(5, "content", Nested(&PART)),
        once(6, "metadata", Nested(&STRUCT)),
        many(7, "extensions", Text),
    ],
);

/// A part of a message or an artifact.
pub static PART: Message = open(
    "Part",
    &[
        one_of(1, "text", Text),
        one_of(2, "file", Nested(&FILE_PART)),
        one_of(3, "data", Nested(&DATA_PART)),
        once(4, "metadata", Nested(&STRUCT)),
    ],
);

/// A file.
pub static FILE_PART: Message = open(
    "FilePart",
    &[
        one_of(1, "file_with_uri", Text),
        one_of(2, "file_with_bytes", Bytes),
        once(3, "mime_type", Text),
        once(4, "name", Text),
    ],
);

/// Data.
pub static DATA_PART: Message = open("DataPart", &[once(1, "data", Nested(&STRUCT))]);

/// Request of GetTask.
pub static GET_TASK_REQUEST: Message = closed(
    "GetTaskRequest",
    &[once(1, "name", Text), once(2, "history_length", Varint)],
);

/// Request of CancelTask.
pub static CANCEL_TASK_REQUEST: Message = closed("CancelTaskRequest", &[once(1, "name", Text)]);

/// Request of TaskSubscription.
pub static TASK_SUBSCRIPTION_REQUEST: Message =
    closed("TaskSubscriptionRequest", &[once(1, "name", Text)]);

/// Request of CreateTaskPushNotificationConfig.
pub static CREATE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "CreateTaskPushNotificationConfigRequest",
    &[
        once(1, "parent", Text),
        once(2, "config_id", Text),
        once(3, "config", Nested(&TASK_PUSH_NOTIFICATION_CONFIG)),
    ],
);

/// A webhook of a task: in Create's request, and in replies.
pub static TASK_PUSH_NOTIFICATION_CONFIG: Message = closed(
    "TaskPushNotificationConfig",
    &[
        once(1, "name", Text),
        once(
            2,
            "push_notification_config",
            Nested(&PUSH_NOTIFICATION_CONFIG),
        ),
    ],
);

/// Request of GetTaskPushNotificationConfig.
pub static GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "GetTaskPushNotificationConfigRequest",
    &[once(1, "name", Text)],
);

/// Request of DeleteTaskPushNotificationConfig.
pub static DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "DeleteTaskPushNotificationConfigRequest",
    &[once(1, "name", Text)],
);

/// Request of ListTaskPushNotificationConfig.
pub static LIST_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Message = closed(
    "ListTaskPushNotificationConfigRequest",
    &[
        once(1, "parent", Text),
        once(2, "page_size", Varint),
        once(3, "page_token", Text),
    ],
);

/// Request of GetAgentCard.
pub static GET_AGENT_CARD_REQUEST: Message = closed("GetAgentCardRequest", &[]);

/// Reply of SendMessage.
pub static SEND_MESSAGE_RESPONSE: Message = open(
    "SendMessageResponse",
    &[
        one_of(1, "task", Nested(&TASK)),
        one_of(2, "msg", Nested(&MESSAGE)),
    ],
);

/// One event of a stream.
pub static STREAM_RESPONSE: Message = open(
    "StreamResponse",
    &[
        one_of(1, "task", Nested(&TASK)),
        one_of(2, "msg", Nested(&MESSAGE)),
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
        once(2, "update", Nested(&MESSAGE)),
        once(3, "timestamp", Nested(&TIMESTAMP)),
    ],
);

/// An artifact. There is no field 2.
pub static ARTIFACT: Message = open(
    "Artifact",
    &[
        once(1, "artifact_id", Text),
        once(3, "name", Text),
        once(4, "description", Text),
        many(5, "parts", Nested(&PART)),
        once(6, "metadata", Nested(&STRUCT)),
        many(7, "extensions", Text),
    ],
);

/// A change of state.
pub static TASK_STATUS_UPDATE_EVENT: Message = open(
    "TaskStatusUpdateEvent",
    &[
        once(1, "task_id", Text),
        once(2, "context_id", Text),
        once(3, "status", Nested(&TASK_STATUS)),
        once(4, "final", Varint),
        once(5, "metadata", Nested(&STRUCT)),
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

/// Reply of ListTaskPushNotificationConfig.
pub static LIST_TASK_PUSH_NOTIFICATION_CONFIG_RESPONSE: Message = open(
    "ListTaskPushNotificationConfigResponse",
    &[
        many(1, "configs", Nested(&TASK_PUSH_NOTIFICATION_CONFIG)),
        once(2, "next_page_token", Text),
    ],
);
