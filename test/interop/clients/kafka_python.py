"""kafka-python, as its documentation uses it. Verbs: README.md."""

import json
import logging
import os
import signal
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

bootstrap, verb, args = sys.argv[1].split(","), sys.argv[2], json.loads(sys.argv[3])


def say(**event):
    print(json.dumps(event), flush=True)


def text(value):
    return None if value is None else value.decode()


def security(tls=False, ca=None, cert=None, key=None, mechanism=None, user=None, password=None, **_):
    protocol = ("SASL_" if mechanism else "") + ("SSL" if tls else "PLAINTEXT")
    return {
        "security_protocol": protocol,
        "ssl_cafile": ca,
        "ssl_certfile": cert,
        "ssl_keyfile": key,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


COMMON = {"bootstrap_servers": bootstrap, **security(**args.get("security", {}))}
# What it says of a connection that failed is in its log alone.
logging.basicConfig(level=logging.ERROR)


asked_to_end = False


def on_term(*_):
    # A member leaves its group first, when the library has come back: an exception would end it anywhere, also while it writes.
    global asked_to_end
    asked_to_end = True
    if verb != "consume":
        os._exit(0)


signal.signal(signal.SIGTERM, on_term)


def produce():
    compression = args.get("compression", "none")
    producer = KafkaProducer(
        **COMMON,
        # Its default is to give up at once.
        retries=10,
        acks={-1: "all"}.get(args.get("acks", -1), args.get("acks")),
        # Its own limit is below what brokers take.
        max_request_size=10_000_000,
        compression_type=None if compression == "none" else compression,
    )
    sent = []
    for i in range(args["count"]):
        value = f"{args['prefix']}{i}".ljust(args.get("sizeBytes", 0), "~")
        sent.append(
            producer.send(
                args["topic"],
                value=None if args.get("tombstones") and i % 2 == 1 else value.encode(),
                key=f"k{i % 10}".encode(),
                partition=args.get("partition"),
                headers=[("trace", str(i).encode())] if args.get("headers") else None,
            )
        )
        time.sleep(args.get("everyMs", 0) / 1000)
    producer.flush(20)
    for each in sent:
        place = each.get(20)
        say(produced={"partition": place.partition, "offset": place.offset})
    producer.close()
    say(done=True)


def record_of(message):
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "key": text(message.key),
        "value": text(message.value),
        "headers": {name: text(value) for name, value in message.headers},
    }


def consume():
    consumer = KafkaConsumer(
        args["topic"],
        **COMMON,
        group_id=args["group"],
        auto_offset_reset=args.get("from", "earliest"),
        auto_commit_interval_ms=200,
        session_timeout_ms=args.get("sessionMs", 6_000),
        request_timeout_ms=args.get("sessionMs", 6_000) + 20_000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=10_000,
        metadata_max_age_ms=1_000,
    )
    seen, assigned = 0, None
    while not asked_to_end:
        for messages in consumer.poll(timeout_ms=100).values():
            for message in messages:
                say(record=record_of(message))
                seen += 1
                if seen == args.get("count"):
                    say(done=True)
        now = sorted(each.partition for each in consumer.assignment())
        if now != assigned:
            assigned = now
            say(assigned=assigned)
    consumer.close()


def read():
    place = TopicPartition(args["topic"], args["partition"])
    consumer = KafkaConsumer(**COMMON, enable_auto_commit=False)
    consumer.assign([place])
    offset = args.get("offset")
    if "timestamp" in args:
        offset = consumer.offsets_for_times({place: args["timestamp"]})[place].offset
    consumer.seek(place, offset)
    seen = 0
    for message in consumer:
        say(record=record_of(message))
        seen += 1
        if seen == args["count"]:
            break
    consumer.close()
    say(done=True)


def admin():
    topic = args["topic"]
    client = KafkaAdminClient(**COMMON)

    def create():
        client.create_topics([NewTopic(topic, 3, 1, topic_configs={"retention.ms": "3600000"})])

    def partitions():
        client.create_partitions({topic: NewPartitions(5)})
        return len(client.describe_topics([topic])[0]["partitions"])

    def retention():
        [answer] = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return next(entry[1] for entry in answer.resources[0][4] if entry[0] == "retention.ms")

    def alter():
        changes = {"retention.ms": "7200000"}
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=changes)])
        return retention()

    def offsets():
        consumer = KafkaConsumer(**COMMON)
        ends = consumer.end_offsets([TopicPartition(topic, 0)])
        consumer.close()
        return list(ends.values())

    def describe_group():
        [group] = client.describe_consumer_groups([args["group"]])
        return {"state": group.state, "members": len(group.members)}

    steps = {
        "describeGroup": describe_group,
        "deleteGroup": lambda: client.delete_consumer_groups([args["group"]]) and None,
        "create": create,
        "list": lambda: list(client.list_topics()),
        "partitions": partitions,
        "describeConfig": retention,
        "alterConfig": alter,
        "offsets": offsets,
        "groups": lambda: [group for group, _ in client.list_consumer_groups()],
        "deleteTopic": lambda: client.delete_topics([topic]) and None,
    }
    for step in args["steps"]:
        result = steps[step]()
        say(step=step, result=True if result is None else result)
    client.close()
    say(done=True)


{"produce": produce, "consume": consume, "read": read, "admin": admin}[verb]()
