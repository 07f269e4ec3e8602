import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Apache Kafka's own client, as its documentation uses it. Verbs: ../../../../README.md. */
public final class Driver {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String RETENTION = "retention.ms";

  private final String bootstrap;
  private final JsonNode args;
  private final String topic;

  private Driver(String bootstrap, JsonNode args) {
    this.bootstrap = bootstrap;
    this.args = args;
    this.topic = args.path("topic").asText();
  }

  public static void main(String[] given) throws Exception {
    Driver driver = new Driver(given[0], JSON.readTree(given[2]));
    switch (given[1]) {
      case "produce" -> driver.produce();
      case "transact" -> driver.transact();
      case "consume" -> driver.consume();
      case "read" -> driver.read();
      case "admin" -> driver.admin();
      default -> throw new IllegalArgumentException(given[1]);
    }
  }

  private static synchronized void say(Map<String, ?> event) throws Exception {
    System.out.println(JSON.writeValueAsString(event));
    System.out.flush();
  }

  private static void done() throws Exception {
    say(Map.of("done", true));
  }

  private Properties common() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("client.id", "interop-java");
    secure(properties, args.path("security"));
    return properties;
  }

  private static void secure(Properties properties, JsonNode security) {
    boolean tls = security.path("tls").asBoolean();
    boolean sasl = security.hasNonNull("mechanism");
    properties.put("security.protocol", (sasl ? "SASL_" : "") + (tls ? "SSL" : "PLAINTEXT"));
    if (tls) {
      properties.put("ssl.truststore.type", "PEM");
      properties.put("ssl.truststore.location", security.get("ca").asText());
    }
    if (security.hasNonNull("pair")) {
      properties.put("ssl.keystore.type", "PEM");
      properties.put("ssl.keystore.location", security.get("pair").asText());
    }
    if (!sasl) return;
    String mechanism = security.get("mechanism").asText();
    String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
    properties.put("sasl.mechanism", mechanism);
    properties.put(
        "sasl.jaas.config",
        "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";"
            .formatted(module, security.get("user").asText(), security.get("password").asText()));
  }

  private KafkaProducer<String, String> producer(Map<String, String> more) {
    Properties properties = common();
    properties.putAll(more);
    return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
  }

  private List<Future<RecordMetadata>> send(KafkaProducer<String, String> producer) throws Exception {
    Integer partition = args.hasNonNull("partition") ? args.get("partition").asInt() : null;
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    for (int i = 0; i < args.get("count").asInt(); i++) {
      String value = args.get("prefix").asText() + i;
      value += "~".repeat(Math.max(0, args.path("sizeBytes").asInt() - value.length()));
      boolean isTombstone = args.path("tombstones").asBoolean() && i % 2 == 1;
      var record = new ProducerRecord<>(topic, partition, "k" + i % 10, isTombstone ? null : value);
      if (args.path("headers").asBoolean()) {
        record.headers().add("trace", String.valueOf(i).getBytes(StandardCharsets.UTF_8));
      }
      if (args.path("timed").asBoolean()) say(Map.of("sending", value, "key", record.key(), "at", now()));
      sent.add(producer.send(record, told(value)));
      Thread.sleep(args.path("everyMs").asLong(0));
    }
    producer.flush();
    return sent;
  }

  private static Callback told(String value) {
    return (place, error) -> {
      if (error != null) return;
      var produced = Map.of("partition", place.partition(), "offset", place.offset(), "value", value);
      try {
        say(Map.of("produced", produced, "at", now()));
      } catch (Exception failed) {
        throw new IllegalStateException(failed);
      }
    };
  }

  /** Microseconds of the machine's clock, the same in every process. */
  private static long now() {
    return System.nanoTime() / 1000;
  }

  private void produce() throws Exception {
    Map<String, String> options =
        Map.of(
            "acks", String.valueOf(args.path("acks").asInt(-1)),
            // Its own limit is below what brokers take.
            "max.request.size", "10000000",
            "compression.type", args.path("compression").asText("none"),
            "enable.idempotence", String.valueOf(args.path("idempotent").asBoolean()));
    try (var producer = producer(options)) {
      for (var each : send(producer)) each.get();
    }
    done();
  }

  private void transact() throws Exception {
    try (var producer = producer(Map.of("transactional.id", args.get("transactionalId").asText()))) {
      producer.initTransactions();
      producer.beginTransaction();
      send(producer);
      if (args.hasNonNull("group")) {
        var place = new TopicPartition(args.get("input").asText(), 0);
        var offset = new OffsetAndMetadata(args.get("offset").asLong());
        var group = new ConsumerGroupMetadata(args.get("group").asText());
        producer.sendOffsetsToTransaction(Map.of(place, offset), group);
      }
      if (args.get("abort").asBoolean()) producer.abortTransaction();
      else producer.commitTransaction();
    }
    done();
  }

  private KafkaConsumer<String, String> consumer(Map<String, String> more) {
    Properties properties = common();
    properties.put("auto.offset.reset", args.path("from").asText("earliest"));
    properties.put("isolation.level", "read_" + args.path("isolation").asText("committed"));
    properties.put("fetch.max.wait.ms", "100");
    properties.putAll(more);
    return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
  }

  private static void say(ConsumerRecord<String, String> record) throws Exception {
    Map<String, String> headers = new LinkedHashMap<>();
    for (Header header : record.headers()) {
      headers.put(header.key(), new String(header.value(), StandardCharsets.UTF_8));
    }
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("topic", record.topic());
    said.put("partition", record.partition());
    said.put("offset", record.offset());
    said.put("key", record.key());
    said.put("value", record.value());
    said.put("headers", headers);
    say(Map.of("record", said));
  }

  /** A member of a group, classic or assigned by the broker: it says what it has whenever that changes. */
  private void consume() throws Exception {
    var protocol = args.path("protocol").asText("classic");
    var settings = new HashMap<String, String>();
    settings.put("group.id", args.get("group").asText());
    settings.put("group.protocol", protocol);
    settings.put("auto.commit.interval.ms", "200");
    settings.put("metadata.max.age.ms", "1000");
    if (args.hasNonNull("instance")) settings.put("group.instance.id", args.get("instance").asText());
    if (args.path("cooperative").asBoolean()) {
      settings.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
    }
    if (protocol.equals("classic")) {
      settings.put("session.timeout.ms", String.valueOf(args.path("sessionMs").asInt(6_000)));
      settings.put("heartbeat.interval.ms", "500");
    }
    var consumer = consumer(settings);
    Thread main = Thread.currentThread();
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  consumer.wakeup();
                  try {
                    main.join(5_000);
                  } catch (InterruptedException ignored) {
                    // It ends all the same.
                  }
                }));
    consumer.subscribe(List.of(topic), new Teller(consumer));
    int seen = 0;
    try {
      while (true) {
        for (var record : consumer.poll(Duration.ofMillis(100))) {
          say(record);
          if (++seen == args.path("count").asInt(-1)) done();
        }
      }
    } catch (WakeupException ended) {
      consumer.close();
    }
  }

  private record Teller(KafkaConsumer<?, ?> consumer) implements ConsumerRebalanceListener {
    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
      tell(consumer.assignment());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
      var left = new ArrayList<>(consumer.assignment());
      left.removeAll(revoked);
      tell(left);
    }

    private static void tell(Collection<TopicPartition> assigned) {
      var partitions = new TreeSet<Integer>();
      for (var place : assigned) partitions.add(place.partition());
      try {
        say(Map.of("assigned", partitions));
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }
  }

  private void read() throws Exception {
    var place = new TopicPartition(topic, args.get("partition").asInt());
    try (var consumer = consumer(Map.of("enable.auto.commit", "false"))) {
      consumer.assign(List.of(place));
      long offset = args.path("offset").asLong();
      if (args.hasNonNull("timestamp")) {
        offset = consumer.offsetsForTimes(Map.of(place, args.get("timestamp").asLong())).get(place).offset();
      }
      consumer.seek(place, offset);
      int count = args.get("count").asInt();
      for (int seen = 0; seen < count; ) {
        for (var record : consumer.poll(Duration.ofMillis(100))) {
          if (seen++ < count) say(record);
        }
      }
    }
    done();
  }

  private void admin() throws Exception {
    try (Admin admin = Admin.create(common())) {
      for (JsonNode step : args.get("steps")) {
        Object result = step(admin, step.asText());
        say(Map.of("step", step.asText(), "result", result == null ? true : result));
      }
    }
    done();
  }

  private Object step(Admin admin, String step) throws Exception {
    var place = new TopicPartition(topic, 0);
    return switch (step) {
      case "create" -> {
        var created = new NewTopic(topic, 3, (short) 1).configs(Map.of(RETENTION, "3600000"));
        yield admin.createTopics(List.of(created)).all().get();
      }
      case "list" -> admin.listTopics().names().get();
      case "partitions" -> {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        var topics = admin.describeTopics(List.of(topic)).allTopicNames().get();
        yield topics.get(topic).partitions().size();
      }
      case "describeConfig" -> retention(admin);
      case "alterConfig" -> {
        var change = new AlterConfigOp(new ConfigEntry(RETENTION, "7200000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource(), List.of(change))).all().get();
        yield retention(admin);
      }
      case "offsets" -> {
        var offsets = admin.listOffsets(Map.of(place, OffsetSpec.latest()));
        yield List.of(offsets.partitionResult(place).get().offset());
      }
      case "deleteRecords" -> admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(4))).all().get();
      case "groups" -> {
        List<String> names = new ArrayList<>();
        for (var group : admin.listGroups().all().get()) names.add(group.groupId());
        yield names;
      }
      case "describeGroup" -> {
        var group = admin.describeConsumerGroups(List.of(group())).all().get().get(group());
        yield Map.of("state", group.groupState().toString(), "members", group.members().size());
      }
      case "groupOffsets" -> {
        var offsets = admin.listConsumerGroupOffsets(group()).partitionsToOffsetAndMetadata().get();
        yield List.of(offsets.get(place).offset());
      }
      case "alterOffsets" ->
          admin.alterConsumerGroupOffsets(group(), Map.of(place, new OffsetAndMetadata(3))).all().get();
      case "deleteGroup" -> admin.deleteConsumerGroups(List.of(group())).all().get();
      case "deleteTopic" -> admin.deleteTopics(List.of(topic)).all().get();
      default -> throw new IllegalArgumentException(step);
    };
  }

  private String group() {
    return args.get("group").asText();
  }

  private ConfigResource resource() {
    return new ConfigResource(ConfigResource.Type.TOPIC, topic);
  }

  private String retention(Admin admin) throws Exception {
    return admin.describeConfigs(List.of(resource())).all().get().get(resource()).get(RETENTION).value();
  }
}
