/** Every API whose messages are known here, by its key. What a server answers is up to the handlers it has. */
import type { Api } from './api.ts'
import { produce } from './messages/00-produce.ts'
import { fetch } from './messages/01-fetch.ts'
import { listOffsets } from './messages/02-list-offsets.ts'
import { metadata } from './messages/03-metadata.ts'
import { offsetCommit } from './messages/08-offset-commit.ts'
import { offsetFetch } from './messages/09-offset-fetch.ts'
import { findCoordinator } from './messages/10-find-coordinator.ts'
import { joinGroup } from './messages/11-join-group.ts'
import { heartbeat } from './messages/12-heartbeat.ts'
import { leaveGroup } from './messages/13-leave-group.ts'
import { syncGroup } from './messages/14-sync-group.ts'
import { describeGroups } from './messages/15-describe-groups.ts'
import { listGroups } from './messages/16-list-groups.ts'
import { saslHandshake } from './messages/17-sasl-handshake.ts'
import { apiVersions } from './messages/18-api-versions.ts'
import { createTopics } from './messages/19-create-topics.ts'
import { deleteTopics } from './messages/20-delete-topics.ts'
import { deleteRecords } from './messages/21-delete-records.ts'
import { initProducerId } from './messages/22-init-producer-id.ts'
import { offsetForLeaderEpoch } from './messages/23-offset-for-leader-epoch.ts'
import { addPartitionsToTxn } from './messages/24-add-partitions-to-txn.ts'
import { addOffsetsToTxn } from './messages/25-add-offsets-to-txn.ts'
import { endTxn } from './messages/26-end-txn.ts'
import { txnOffsetCommit } from './messages/28-txn-offset-commit.ts'
import { describeAcls } from './messages/29-describe-acls.ts'
import { createAcls } from './messages/30-create-acls.ts'
import { deleteAcls } from './messages/31-delete-acls.ts'
import { describeConfigs } from './messages/32-describe-configs.ts'
import { alterConfigs } from './messages/33-alter-configs.ts'
import { describeLogDirs } from './messages/35-describe-log-dirs.ts'
import { saslAuthenticate } from './messages/36-sasl-authenticate.ts'
import { createPartitions } from './messages/37-create-partitions.ts'
import { deleteGroups } from './messages/42-delete-groups.ts'
import { electLeaders } from './messages/43-elect-leaders.ts'
import { incrementalAlterConfigs } from './messages/44-incremental-alter-configs.ts'
import { alterPartitionReassignments } from './messages/45-alter-partition-reassignments.ts'
import { listPartitionReassignments } from './messages/46-list-partition-reassignments.ts'
import { offsetDelete } from './messages/47-offset-delete.ts'
import { describeClientQuotas } from './messages/48-describe-client-quotas.ts'
import { alterClientQuotas } from './messages/49-alter-client-quotas.ts'
import { describeUserScramCredentials } from './messages/50-describe-user-scram-credentials.ts'
import { alterUserScramCredentials } from './messages/51-alter-user-scram-credentials.ts'
import { updateFeatures } from './messages/57-update-features.ts'
import { describeCluster } from './messages/60-describe-cluster.ts'
import { describeProducers } from './messages/61-describe-producers.ts'
import { describeTransactions } from './messages/65-describe-transactions.ts'
import { listTransactions } from './messages/66-list-transactions.ts'
import { consumerGroupHeartbeat } from './messages/68-consumer-group-heartbeat.ts'
import { consumerGroupDescribe } from './messages/69-consumer-group-describe.ts'
import { listConfigResources } from './messages/74-list-config-resources.ts'
import { describeTopicPartitions } from './messages/75-describe-topic-partitions.ts'

export const APIS: readonly Api[] = [
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
  apiVersions,
  createTopics,
  deleteTopics,
  deleteRecords,
  initProducerId,
  offsetForLeaderEpoch,
  addPartitionsToTxn,
  addOffsetsToTxn,
  endTxn,
  txnOffsetCommit,
  describeAcls,
  createAcls,
  deleteAcls,
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
  describeClientQuotas,
  alterClientQuotas,
  describeUserScramCredentials,
  alterUserScramCredentials,
  updateFeatures,
  describeCluster,
  describeProducers,
  describeTransactions,
  listTransactions,
  consumerGroupHeartbeat,
  consumerGroupDescribe,
  listConfigResources,
  describeTopicPartitions,
] as unknown as readonly Api[]
