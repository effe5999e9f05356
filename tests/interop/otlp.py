"""Reads tests/cases/otlp/request.json as the OpenTelemetry protocol's own messages.

`opentelemetry-proto` has the messages; their JSON names and number forms must be ours. Ids of traces
are the one exception of OTLP: hex there, base64 for Protobuf's own parser, so they are looked at as
text.
"""

import json
import sys
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

text = (Path(__file__).parents[1] / "cases/otlp/request.json").read_text()
plain = json.loads(text)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
# An unknown name or a wrong form is an error here.
request = json_format.Parse(text, ExportLogsServiceRequest())
[resource] = request.resource_logs
names = {a.key: a.value.string_value for a in resource.resource.attributes}
assert names["service.name"] == "portcullis", names
[scope] = resource.scope_logs
assert len(scope.log_records) == len(plain) == 4
for record, raw in zip(scope.log_records, plain, strict=True):
    line = json.loads(record.body.string_value)
    attributes = {a.key: a.value for a in record.attributes}
    assert attributes["event.name"].string_value == f"portcullis.{line['kind']}"
    assert attributes["portcullis.seq"].int_value == line["seq"]
    assert record.time_unix_nano % 1_000_000 == 0 and record.time_unix_nano > 10**18
    assert record.severity_text == SeverityNumber.Name(record.severity_number).split("_")[-1]
    assert raw.get("traceId") == line.get("trace_id")
    assert all(len(raw["traceId"]) == 32 and int(raw["traceId"], 16) for _ in [0] if "traceId" in raw)

# What we read of an answer has the names of the protocol too.
answer = ExportLogsServiceResponse()
answer.partial_success.rejected_log_records = 3
answer.partial_success.error_message = "x"
said = json.loads(json_format.MessageToJson(answer))
assert said == {"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "x"}}, said
print(f"otlp: {len(plain)} log records are understood")
sys.exit(0)
