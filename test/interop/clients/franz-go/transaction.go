package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offsets within a transaction, without being a member of the group: the library has that for members alone
// (GroupTransactSession), so the request is its own, unchanged.
func commitInTransaction(client *kgo.Client, offsets kadm.Offsets) error {
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		return err
	}
	adding := kmsg.NewPtrAddOffsetsToTxnRequest()
	adding.TransactionalID, adding.ProducerID, adding.ProducerEpoch, adding.Group = args.TransactionalID, id, epoch, args.Group
	added, err := adding.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(added.ErrorCode); err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = args.TransactionalID, id, epoch, args.Group
	commit.Generation = -1
	for topic, partitions := range offsets {
		each := kmsg.NewTxnOffsetCommitRequestTopic()
		each.Topic = topic
		for _, offset := range partitions {
			place := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			place.Partition, place.Offset, place.LeaderEpoch = offset.Partition, offset.At, -1
			each.Partitions = append(each.Partitions, place)
		}
		commit.Topics = append(commit.Topics, each)
	}
	committed, err := commit.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, topic := range committed.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return fmt.Errorf("commit of %s: %w", topic.Topic, err)
			}
		}
	}
	return nil
}
