/**
 * Which operations a client is authorized for, as bits by the numbers of Kafka's AclOperation. While there are no access
 * rules everybody may do what there is to do with a resource.
 */

const OPERATIONS = {
  read: 3,
  write: 4,
  create: 5,
  delete: 6,
  alter: 7,
  describe: 8,
  clusterAction: 9,
  describeConfigs: 10,
  alterConfigs: 11,
  idempotentWrite: 12,
} as const

function bits(...operations: readonly (keyof typeof OPERATIONS)[]): number {
  return operations.reduce((all, each) => all | (1 << OPERATIONS[each]), 0)
}

export const TOPIC_OPERATIONS: number = bits(
  'read',
  'write',
  'create',
  'delete',
  'alter',
  'describe',
  'describeConfigs',
  'alterConfigs',
)
export const GROUP_OPERATIONS: number = bits('read', 'delete', 'describe', 'describeConfigs', 'alterConfigs')
export const CLUSTER_OPERATIONS: number = bits(
  'create',
  'alter',
  'describe',
  'clusterAction',
  'describeConfigs',
  'alterConfigs',
  'idempotentWrite',
)
