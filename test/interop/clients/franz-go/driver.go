// franz-go, as its documentation uses it. Verbs: ../README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type arguments struct {
	Topic, Prefix, Compression, TransactionalID, Group, Input, From, Isolation, Instance string

	Count, EveryMs, SessionMs, SizeBytes   int
	Partition                              int32
	Acks                                   *int
	Offset, Timestamp                      int64
	Idempotent, Headers, Abort, Tombstones bool
	Steps                                  []string
	Security                               security
}

const retention = "retention.ms"

var (
	args arguments
	said sync.Mutex
	ctx  = context.Background()
)

func main() {
	bootstrap, verb := os.Args[1], os.Args[2]
	check(json.Unmarshal([]byte(os.Args[3]), &args))
	common := []kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ClientID("interop-franz-go"), kgo.AllowAutoTopicCreation()}
	common = append(common, args.Security.options()...)
	verbs := map[string]func([]kgo.Opt){"produce": produce, "transact": transact, "consume": consume, "read": read, "admin": admin}
	verbs[verb](common)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func say(event map[string]any) {
	said.Lock()
	defer said.Unlock()
	os.Stdout.Write(append(must(json.Marshal(event)), '\n'))
}

func done() { say(map[string]any{"done": true}) }

func send(client *kgo.Client) {
	for i := range args.Count {
		record := &kgo.Record{Topic: args.Topic, Key: []byte("k" + strconv.Itoa(i%10)), Value: []byte(args.Prefix + strconv.Itoa(i))}
		if missing := args.SizeBytes - len(record.Value); missing > 0 {
			record.Value = append(record.Value, strings.Repeat("~", missing)...)
		}
		if args.Tombstones && i%2 == 1 {
			record.Value = nil
		}
		if args.Headers {
			record.Headers = []kgo.RecordHeader{{Key: "trace", Value: []byte(strconv.Itoa(i))}}
		}
		client.Produce(ctx, record, func(record *kgo.Record, err error) {
			check(err)
			say(map[string]any{"produced": map[string]any{"partition": record.Partition, "offset": record.Offset}})
		})
		time.Sleep(time.Duration(args.EveryMs) * time.Millisecond)
	}
	check(client.Flush(ctx))
}

func produce(opts []kgo.Opt) {
	codecs := map[string]kgo.CompressionCodec{
		"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	// Its own limit is below what brokers take.
	opts = append(opts, kgo.ProducerBatchCompression(codecs[args.Compression]), kgo.ProducerBatchMaxBytes(10_000_000))
	if !args.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	if args.Acks != nil {
		opts = append(opts, kgo.RequiredAcks(map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}[*args.Acks]))
	}
	client := must(kgo.NewClient(opts...))
	// It connects when it has to, and then tries for ever; a program that wants to know whether it may come in asks.
	asked, stop := context.WithTimeout(ctx, 20*time.Second)
	check(client.Ping(asked))
	stop()
	send(client)
	client.Close()
	done()
}

func transact(opts []kgo.Opt) {
	client := must(kgo.NewClient(append(opts, kgo.TransactionalID(args.TransactionalID))...))
	check(client.BeginTransaction())
	send(client)
	if args.Group != "" {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: args.Input, Partition: 0, At: args.Offset, LeaderEpoch: -1})
		check(commitInTransaction(client, offsets))
	}
	check(client.EndTransaction(ctx, kgo.TransactionEndTry(!args.Abort)))
	client.Close()
	done()
}

func consume(opts []kgo.Opt) {
	session := 6 * time.Second
	if args.SessionMs > 0 {
		session = time.Duration(args.SessionMs) * time.Millisecond
	}
	var assigned []int32
	tell := func() {
		slices.Sort(assigned)
		say(map[string]any{"assigned": append([]int32{}, assigned...)})
	}
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
		assigned = slices.DeleteFunc(assigned, func(each int32) bool { return slices.Contains(gone[args.Topic], each) })
		tell()
	}
	revoked := func(ctx context.Context, client *kgo.Client, gone map[string][]int32) {
		_ = client.CommitUncommittedOffsets(ctx)
		lost(ctx, client, gone)
	}
	opts = append(opts,
		kgo.ConsumerGroup(args.Group), kgo.ConsumeTopics(args.Topic), kgo.ConsumeResetOffset(start(args.From)),
		kgo.FetchIsolationLevel(isolation()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(500*time.Millisecond), kgo.AutoCommitInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more map[string][]int32) {
			assigned = append(assigned, more[args.Topic]...)
			tell()
		}),
		kgo.OnPartitionsRevoked(revoked), kgo.OnPartitionsLost(lost),
		kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	// Its groups are cooperative unless told otherwise.
	if args.Instance != "" {
		opts = append(opts, kgo.InstanceID(args.Instance))
	}
	client := must(kgo.NewClient(opts...))
	asked, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	for seen := 0; asked.Err() == nil; {
		fetches := client.PollFetches(asked)
		fetches.EachError(func(topic string, _ int32, err error) {
			// A topic that was made anew is another one: the library leaves it to the program to take it up.
			if errors.Is(err, kerr.UnknownTopicID) {
				client.PurgeTopicsFromConsuming(topic)
				client.AddConsumeTopics(topic)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			sayRecord(record)
			if seen++; seen == args.Count {
				done()
			}
		})
	}
	_ = client.CommitUncommittedOffsets(ctx)
	client.Close()
}

func start(from string) kgo.Offset {
	if from == "latest" {
		return kgo.NewOffset().AtEnd()
	}
	return kgo.NewOffset().AtStart()
}

func isolation() kgo.IsolationLevel {
	if args.Isolation == "uncommitted" {
		return kgo.ReadUncommitted()
	}
	return kgo.ReadCommitted()
}

func sayRecord(record *kgo.Record) {
	headers := map[string]string{}
	for _, header := range record.Headers {
		headers[header.Key] = string(header.Value)
	}
	say(map[string]any{"record": map[string]any{
		"topic": record.Topic, "partition": record.Partition, "offset": record.Offset,
		"key": text(record.Key), "value": text(record.Value), "headers": headers,
	}})
}

func text(bytes []byte) any {
	if bytes == nil {
		return nil
	}
	return string(bytes)
}

func read(opts []kgo.Opt) {
	from := kgo.NewOffset().At(args.Offset)
	if args.Timestamp > 0 {
		from = kgo.NewOffset().AfterMilli(args.Timestamp)
	}
	places := map[string]map[int32]kgo.Offset{args.Topic: {args.Partition: from}}
	client := must(kgo.NewClient(append(opts, kgo.ConsumePartitions(places), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))...))
	for seen := 0; seen < args.Count; {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			if seen++; seen <= args.Count {
				sayRecord(record)
			}
		})
	}
	client.Close()
	done()
}

func admin(opts []kgo.Opt) {
	client := must(kadm.NewOptClient(opts...))
	for _, step := range args.Steps {
		say(map[string]any{"step": step, "result": steps[step](client)})
	}
	client.Close()
	done()
}

var steps = map[string]func(*kadm.Client) any{
	"create": func(client *kadm.Client) any {
		value := "3600000"
		return must(client.CreateTopic(ctx, 3, 1, map[string]*string{retention: &value}, args.Topic)).Topic
	},
	"list": func(client *kadm.Client) any { return must(client.ListTopics(ctx)).Names() },
	"partitions": func(client *kadm.Client) any {
		check(must(client.UpdatePartitions(ctx, 5, args.Topic)).Error())
		return len(must(client.ListTopics(ctx, args.Topic))[args.Topic].Partitions)
	},
	"describeConfig": describeConfig,
	"alterConfig": func(client *kadm.Client) any {
		value := "7200000"
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: retention, Value: &value}
		for _, each := range must(client.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, args.Topic)) {
			check(each.Err)
		}
		return describeConfig(client)
	},
	"offsets": func(client *kadm.Client) any {
		end, _ := must(client.ListEndOffsets(ctx, args.Topic)).Lookup(args.Topic, 0)
		return []int64{end.Offset}
	},
	"deleteRecords": func(client *kadm.Client) any {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: args.Topic, Partition: 0, At: 4})
		return must(client.DeleteRecords(ctx, offsets)).Error() == nil
	},
	"groups": func(client *kadm.Client) any { return must(client.ListGroups(ctx)).Groups() },
	"describeGroup": func(client *kadm.Client) any {
		group := must(client.DescribeGroups(ctx, args.Group))[args.Group]
		check(group.Err)
		return map[string]any{"state": group.State, "members": len(group.Members)}
	},
	"groupOffsets": func(client *kadm.Client) any {
		offset, _ := must(client.FetchOffsets(ctx, args.Group)).Lookup(args.Topic, 0)
		return []int64{offset.At}
	},
	"alterOffsets": func(client *kadm.Client) any {
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: args.Topic, Partition: 0, At: 3, LeaderEpoch: -1})
		check(client.CommitAllOffsets(ctx, args.Group, offsets))
		return true
	},
	"deleteGroup": func(client *kadm.Client) any { return must(client.DeleteGroup(ctx, args.Group)).Err == nil },
	"deleteTopic": func(client *kadm.Client) any {
		check(must(client.DeleteTopics(ctx, args.Topic)).Error())
		return true
	},
}

func describeConfig(client *kadm.Client) any {
	configs := must(client.DescribeTopicConfigs(ctx, args.Topic))
	for _, config := range must(configs.On(args.Topic, nil)).Configs {
		if config.Key == retention {
			return *config.Value
		}
	}
	return nil
}
