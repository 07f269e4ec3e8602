/** Every handler there is, by the key of its API. ApiVersions says what is in here, so the two cannot differ. */
import type { Handler } from './handler.ts'
import { produce } from './handlers/00-produce.ts'
import { fetch } from './handlers/01-fetch.ts'
import { listOffsets } from './handlers/02-list-offsets.ts'
import { metadata } from './handlers/03-metadata.ts'
import { offsetCommit } from './handlers/08-offset-commit.ts'
import { offsetFetch } from './handlers/09-offset-fetch.ts'
import { findCoordinator } from './handlers/10-find-coordinator.ts'
import { joinGroup } from './handlers/11-join-group.ts'
import { heartbeat } from './handlers/12-heartbeat.ts'
import { leaveGroup } from './handlers/13-leave-group.ts'
import { syncGroup } from './handlers/14-sync-group.ts'
import { describeGroups } from './handlers/15-describe-groups.ts'
import { listGroups } from './handlers/16-list-groups.ts'
import { saslHandshake } from './handlers/17-sasl-handshake.ts'
import { apiVersionsOf } from './handlers/18-api-versions.ts'
import { createTopics } from './handlers/19-create-topics.ts'
import { deleteTopics } from './handlers/20-delete-topics.ts'
import { deleteRecords } from './handlers/21-delete-records.ts'
import { initProducerId } from './handlers/22-init-producer-id.ts'
import { offsetForLeaderEpoch } from './handlers/23-offset-for-leader-epoch.ts'
import { addPartitionsToTxn } from './handlers/24-add-partitions-to-txn.ts'
import { addOffsetsToTxn } from './handlers/25-add-offsets-to-txn.ts'
import { endTxn } from './handlers/26-end-txn.ts'
import { txnOffsetCommit } from './handlers/28-txn-offset-commit.ts'
import { describeConfigs } from './handlers/32-describe-configs.ts'
import { alterConfigs } from './handlers/33-alter-configs.ts'
import { describeLogDirs } from './handlers/35-describe-log-dirs.ts'
import { saslAuthenticate } from './handlers/36-sasl-authenticate.ts'
import { createPartitions } from './handlers/37-create-partitions.ts'
import { deleteGroups } from './handlers/42-delete-groups.ts'
import { electLeaders } from './handlers/43-elect-leaders.ts'
import { incrementalAlterConfigs } from './handlers/44-incremental-alter-configs.ts'
import { alterPartitionReassignments } from './handlers/45-alter-partition-reassignments.ts'
import { listPartitionReassignments } from './handlers/46-list-partition-reassignments.ts'
import { offsetDelete } from './handlers/47-offset-delete.ts'
import { updateFeaturesOf } from './handlers/57-update-features.ts'
import { describeCluster } from './handlers/60-describe-cluster.ts'
import { describeProducers } from './handlers/61-describe-producers.ts'
import { describeTransactions } from './handlers/65-describe-transactions.ts'
import { listTransactions } from './handlers/66-list-transactions.ts'
import { consumerGroupHeartbeat } from './handlers/68-consumer-group-heartbeat.ts'
import { consumerGroupDescribe } from './handlers/69-consumer-group-describe.ts'
import { listConfigResources } from './handlers/74-list-config-resources.ts'
import { describeTopicPartitions } from './handlers/75-describe-topic-partitions.ts'

export const HANDLERS: readonly Handler[] = [
  produce,
  fetch,
  listOffsets,
  metadata,
  offsetCommit,
  offsetFetch,
  findCoordinator,
  joinGroup,
  heartbeat,
  leaveGroup,
  syncGroup,
  describeGroups,
  listGroups,
  saslHandshake,
  apiVersionsOf(() => HANDLERS),
  createTopics,
  deleteTopics,
  deleteRecords,
  initProducerId,
  offsetForLeaderEpoch,
  addPartitionsToTxn,
  addOffsetsToTxn,
  endTxn,
  txnOffsetCommit,
  describeConfigs,
  alterConfigs,
  describeLogDirs,
  saslAuthenticate,
  createPartitions,
  deleteGroups,
  electLeaders,
  incrementalAlterConfigs,
  alterPartitionReassignments,
  listPartitionReassignments,
  offsetDelete,
  updateFeaturesOf(() => HANDLERS),
  describeCluster,
  describeProducers,
  describeTransactions,
  listTransactions,
  consumerGroupHeartbeat,
  consumerGroupDescribe,
  listConfigResources,
  describeTopicPartitions,
]
